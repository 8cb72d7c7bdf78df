# Every call of the command line: its arguments, of which words in capitals stand for values.
calls <- list(
  plan = c("plan", "--schema", "SCHEMA", "--epsilon", "EPSILON", "--json"),
  fit = c("fit", "DATA", "--schema", "SCHEMA", "--epsilon", "EPSILON", "--out", "OUT", "--json"),
  certificate = c("certificate", "RELEASE", "--json"),
  sample = c("sample", "RELEASE", "--out", "OUT"),
  estimate = c("estimate", "RELEASE", "QUESTION", "--csv")
)

# What may be added to a call, by the name of an argument in R; a vector gives an option several times.
options_of <- list(
  plan = c(delta = "--delta", rows = "--rows", target = "--target", method = "--method", releases = "--releases"),
  fit = c(delta = "--delta", rows = "--rows", target = "--target", method = "--method", ledger = "--ledger",
          prior = "--prior", checkpoint = "--checkpoint", seed = "--seed"),
  certificate = c(),
  sample = c(n = "-n", seed = "--seed", replicates = "--replicates", given = "--given"),
  estimate = c(by = "--by", family = "--family", at = "--at", of = "--of", level = "--level")
)

# Run one call; return what it prints. What it says on standard error is shown, or is the error.
run <- function(name, values, options) {
  arguments <- unlist(lapply(calls[[name]], function(word) if (word %in% names(values)) values[[word]] else word))
  flags <- options_of[[name]]
  unknown <- setdiff(names(options), names(flags))
  if (length(unknown)) stop("Expected arguments of `sfumato ", name, "`, got ", paste(unknown, collapse = ", "))
  for (option in names(options)) {
    for (value in options[[option]]) arguments <- c(arguments, flags[[option]], text_of(value))
  }
  errors <- tempfile()
  on.exit(unlink(errors))
  command <- Sys.getenv("SFUMATO", "sfumato")
  printed <- suppressWarnings(system2(command, shQuote(arguments), stdout = TRUE, stderr = errors))
  status <- attr(printed, "status")
  if (!is.null(status) && status != 0) stop(paste(readLines(errors), collapse = "\n"), call. = FALSE)
  paste(printed, collapse = "\n")
}

text_of <- function(value) if (is.numeric(value)) format(value, digits = 15, scientific = FALSE, trim = TRUE) else value

# A document as a list; as its text without the package jsonlite.
parsed <- function(text) if (requireNamespace("jsonlite", quietly = TRUE)) jsonlite::fromJSON(text) else text

# Records as a path: those of a data frame lie in a file of this session as long as the call runs.
with_file <- function(data, run) {
  if (is.character(data)) return(run(data))
  folder <- tempfile()
  dir.create(folder, mode = "0700")
  on.exit(unlink(folder, recursive = TRUE))
  path <- file.path(folder, "records.csv")
  write.csv(data, path, row.names = FALSE, na = "", fileEncoding = "UTF-8")
  run(path)
}

sfumato_plan <- function(schema, epsilon, ...) {
  parsed(run("plan", list(SCHEMA = schema, EPSILON = text_of(epsilon)), list(...)))
}

sfumato_fit <- function(data, schema, epsilon, out, ...) {
  values <- list(SCHEMA = schema, EPSILON = text_of(epsilon), OUT = out)
  with_file(data, function(path) run("fit", c(values, DATA = path), list(...)))
  out
}

sfumato_certificate <- function(release) parsed(run("certificate", list(RELEASE = release), list()))

# Synthetic rows; of replicates an imputationList of mitools, which survey::svydesign takes as its data.
sfumato_sample <- function(release, ...) {
  folder <- tempfile()
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  path <- file.path(folder, "rows.csv")
  run("sample", list(RELEASE = release, OUT = path), list(...))
  rows <- read.csv(path, check.names = FALSE)
  if (is.null(list(...)[["replicates"]])) return(rows)
  tables <- unname(split(rows[names(rows) != "replicate"], rows$replicate))
  if (requireNamespace("mitools", quietly = TRUE)) mitools::imputationList(tables) else tables
}

# One row an answer, with value or coef, std_error, low and high.
sfumato_estimate <- function(release, question, ...) {
  read.csv(text = run("estimate", list(RELEASE = release, QUESTION = question), list(...)))
}

# One result of the same analysis of all replicates, as mitools::MIcombine returns one. MIcombine is for rows of which
# some cells were imputed; in replicates all are drawn anew, so what their own size adds is taken off, not added.
sfumato_combine <- function(results) {
  estimates <- sapply(results, function(result) as.numeric(coef(result)))
  inside <- sapply(results, function(result) diag(as.matrix(vcov(result))))
  estimates <- matrix(estimates, ncol = length(results))
  inside <- matrix(inside, ncol = length(results))
  m <- ncol(estimates)
  between <- (1 + 1 / m) * apply(estimates, 1, var)
  variance <- pmax(between - rowMeans(inside), 0.1 * between)
  terms <- names(coef(results[[1]]))
  structure(
    list(
      coefficients = stats::setNames(rowMeans(estimates), terms),
      variance = structure(diag(variance, nrow = length(variance)), dimnames = list(terms, terms)),
      call = sys.call(), nimp = m, df = (m - 1) * (variance / between)^2, missinfo = rep(NA_real_, length(variance))
    ),
    class = "MIresult"
  )
}
