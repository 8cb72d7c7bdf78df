# Run by `Rscript tests/sfumato.R` in this folder, where the command sfumato is found. No package of R is needed.
source(if (file.exists("R/sfumato.R")) "R/sfumato.R" else "../R/sfumato.R")
library(stats)
library(utils)

folder <- tempfile()
dir.create(folder)
schema <- file.path(folder, "schema.yaml")
writeLines(c("columns:", "  age: {kind: continuous, lower: 0, upper: 99}", "  score: {kind: continuous, lower: 0, upper: 50}", "  sex: [f, m]", "rows: 2000"), schema)
set.seed(1)
age <- runif(2000, 20, 80)
records <- data.frame(age = age, score = pmin(pmax(age / 3 + rnorm(2000, 0, 3), 0), 50),
                      sex = ifelse(runif(2000) < 0.5, "f", "m"))

release <- sfumato_fit(records, schema, 3, file.path(folder, "r.sfm"), delta = 1e-6)
stopifnot(file.exists(release), length(list.files(tempdir(), "records.csv", recursive = TRUE)) == 0)
rows <- sfumato_sample(release, n = 500, seed = 1)
stopifnot(nrow(rows) == 500, identical(names(rows), names(records)), all(rows$sex %in% c("f", "m")))

mean_age <- sfumato_estimate(release, c("mean", "age"))
stopifnot(abs(mean_age$value - mean(age)) < 5 * mean_age$std_error, mean_age$std_error > 0)
slope <- sfumato_estimate(release, "score ~ age")
stopifnot(abs(slope$coef[slope$term == "age"] - 1 / 3) < 0.1)

replicates <- sfumato_sample(release, n = 4000, replicates = 20, seed = 1)
tables <- if (inherits(replicates, "imputationList")) replicates$imputations else replicates
combined <- sfumato_combine(lapply(tables, function(table) lm(score ~ age, table)))
stopifnot(length(tables) == 20, abs(combined$coefficients[["age"]] - 1 / 3) < 0.1)
if (requireNamespace("survey", quietly = TRUE) && inherits(replicates, "imputationList")) {
  design <- survey::svydesign(ids = ~1, weights = ~1, data = replicates)
  means <- sfumato_combine(with(design, survey::svymean(~age)))
  stopifnot(abs(coef(means) - mean(age)) < 3, mitools::MIcombine(list(means, means))$nimp == 2)
}

refused <- tryCatch(sfumato_fit(records, schema, -1, file.path(folder, "s.sfm")), error = conditionMessage)
stopifnot(grepl("epsilon", refused))
stopifnot(is.character(tryCatch(sfumato_sample(release, rows = 5), error = conditionMessage)))
cat("passed\n")
