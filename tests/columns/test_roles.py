"""What a column's name says, in several languages, without a look at its cells."""

import pytest

from sfumato.columns.roles import measures_bodies, names_people, numbers_people, role_of, words_of

ROLES = {
    "person": "patient_id PatientID customerID Kundennummer Versichertennr numéro_client user screen_name username uid "
    "customer_unique_id hash_user idPatient persnr subject_id respondent pid klantnummer paciente_id SEQN "
    "USUBJID subjid participant Probandennummer case_no MRN_hash Fall_Nr VP-Code RID codigo_paciente cod_cliente "
    "codice_paziente kvnr",
    "household": "hhid household_id HH_ID Haushaltsnummer menage huishouden_nr hogar_id",
    "name": "first_name lastName surname Vorname Nachname prénom apellido voornaam achternaam "
    "full_name patient_name cognome",
    "contact": "email hashed_email email_hash e-mail Telefonnummer phone home_phone Straße adresse "
    "dirección straat address2 IBAN courriel",
    "text": "comment notes Bemerkung freitext review_text opmerkingen observaciones commentaire doctor_notes "
    "description",
    "place": "zip zip_code PLZ Postleitzahl code_postal postcode customer_zip_code_prefix FIPS",
    "weight": "wgt pweight PERWT fnlwgt survey_weight PWGTP WTMEC2YR pspwght Gewichtung ponderacion weight2019",
    "perhaps weight": "weight Gewicht poids",
}
NONE = (
    "age customer_city patient_age user_agent order_id amount customers households Members family_size member_since "
    "account_balance PhoneService gender diagnosis icd10 surnames_rank text_length street_light number_of_patients "
    "customer_segment visit_no country date_of_birth birth_weight_g"
)


@pytest.mark.parametrize(("name", "role"), [(name, role) for role, names in ROLES.items() for name in names.split()])
def test_a_name_speaks(name, role):
    assert role_of(name) == role


@pytest.mark.parametrize("name", NONE.split())
def test_a_name_that_speaks_of_something_that_people_have_says_nothing(name):
    assert role_of(name) is None


def test_words_and_what_names_people():
    assert words_of("Prénom_duPATIENTId2") == ["prenom", "du", "patient", "id2"]
    assert role_of("...") is None
    assert [names_people(name) for name in ("order_no", "vorname", "zip", "notes", "age")] == [
        True, True, False, False, False
    ]  # fmt: skip
    assert [numbers_people(name) for name in ("PatientID", "pid", "IPP", "Kundennummer", "hh_no", "user_hash")] == [
        True
    ] * 6
    assert not any(map(numbers_people, ("patient", "member", "order_no", "first_name", "household")))
    assert measures_bodies(["age", "Height (cm)"])
    assert not measures_bodies(["age", "region"])
