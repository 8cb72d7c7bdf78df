"""What is exported, read by the validators of others; each runs where it is installed."""

import json

import pytest
import yaml

from fixtures.publish_names import NAMES, TITLE


@pytest.mark.filterwarnings("ignore::DeprecationWarning:rdflib.*")  # of what the validator imports
def test_croissant_is_valid_and_reads_the_rows(folder):
    croissant = pytest.importorskip("mlcroissant", reason="needs mlcroissant")
    dataset = croissant.Dataset(jsonld=str(folder / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    assert not dataset.metadata.ctx.issues.warnings
    assert len(list(dataset.records("rows"))) == 50


def test_croissant_describes_every_column_and_says_what_it_cost(folder):
    said = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    fields = said["recordSet"][0]["field"]
    assert [entry["source"]["extract"]["column"] for entry in fields] == list(NAMES)
    types = ["sc:Text", "sc:Integer", "sc:Float", "sc:Boolean", "sc:DateTime", "sc:Text"]
    assert [entry["dataType"] for entry in fields] == types
    assert "epsilon = 1" in said["rai:dataCollection"]
    assert {entry["name"] for entry in said["distribution"]} == {"rows.csv", "rows.parquet"}


def test_hugging_face_reads_the_card(folder):
    hub = pytest.importorskip("huggingface_hub", reason="needs huggingface_hub")
    card = hub.DatasetCard.load(folder / "README.md")
    assert card.data.pretty_name == TITLE
    assert card.data.license == "cc-by-4.0"


def test_the_registry_s_record_has_no_other_keys_than_its_schema(folder):
    """Keys and enumerations of opendp/deployments-registry-data, schemas/deployments-schema.yaml."""
    said = yaml.safe_load((folder / "registry.yaml").read_text(encoding="utf-8"))
    assert said.keys() == {"url_slug", "deployment"}
    allowed = {
        "basic": "name data_curators description intended_use data_product_type data_product_region "
        "data_product_sector publication_date",
        "dp_variant": "variant_name data_domain unprotected_quantities",
        "privacy_loss": "privacy_unit privacy_unit_details number_of_privacy_units privacy_parameters "
        "privacy_parameters_details",
        "deployment_model": "model_name model_name_details trust_assumptions actors release_type release_type_details "
        "data_source_type data_source_type_details access_type access_type_details",
        "implementation": "preprocessing_and_hyperparameter_tuning mechanisms composition post_processing "
        "justification utility additional_information",
        "administrative": "evidence_sources status registry_authors tier notes",
    }
    for part, entries in said["deployment"].items():
        assert set(entries) <= set(allowed[part].split()), part
    model = said["deployment"]["deployment_model"]
    assert model["model_name"] in {"Local", "Central", "Shuffle", "Federated", "Varies"}
    assert model["release_type"] in {"One release", "Many releases"}
    assert model["access_type"] in {"Interactive", "Non-interactive"}
    assert said["deployment"]["dp_variant"]["variant_name"] in {"Pure DP", "Approximate DP", "Zero-concentrated DP"}
