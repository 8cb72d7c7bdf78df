"""Roles of columns by their names: a person's number, a name, an address, free text, a place's code, a survey's weight.

Names of English, German, French, Spanish, Italian and Dutch. A name is public, and no cell is read here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["person", "household", "name", "contact", "text", "place", "weight", "perhaps weight"]

PEOPLE: tuple[Role, ...] = ("person", "household", "name", "contact")
"""Roles of columns that name people."""


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


_PERSON = (
    "patient|patientin|person|persona|persoon|personne|personen|customer|cust|client|cliente|klient|user|member|account|"
    "acct|respondent|participant|student|pupil|employee|donor|tenant|insured|beneficiary|policyholder|citizen|resident|"
    "worker|defendant|offender|inmate|individual|indiv|passenger|guest|visitor|subscriber|borrower|applicant|candidate|"
    "versuchsperson|testperson|studienteilnehmer|insasse|klaeger|bewerber|spender|"
    "author|reviewer|driver|caller|victim|enrollee|veteran|voter|consumer|cardholder|proband|kunde|kunden|versicherte|"
    "versicherten|mitarbeiter|schueler|schuler|teilnehmer|benutzer|nutzer|mitglied|bewohner|assure|eleve|etudiant|"
    "utilisateur|individu|salarie|employe|adherent|abonne|paciente|usuario|alumno|estudiante|empleado|miembro|socio|"
    "asegurado|paziente|utente|klant|gebruiker|medewerker|leerling|deelnemer|subscriber|learner|nurse|physician|doctor"
)
_HOUSEHOLD = (
    "household|hh|family|haushalt|haushalts|familie|menage|famille|hogar|familia|famiglia|huishouden|gezin|dwelling"
)
_WITH_NUMBER = (
    "subject|usubj|subj|case|child|mother|father|baby|pers|pat|pt|emp|resp|stu|mem|usr|kind|mutter|fall|vp|sujet|sujeto|"
    "soggetto|random|randomisation|randomization|screening|enrolment|enrollment|prolific|mturk|dossier|expediente|"
    "staff|bene|chart"
)
_NUMBER = (
    "id|ids|nr|no|num|number|nummer|numero|numer|uuid|guid|key|code|pid|hash|index|idx|pseudonym|cod|codigo|codice|"
    "identifier|identifiant|identificador|identificativo|kennung|kennziffer|token"
)
_OF_RECORDS = {"id", "ids", "nr", "no", "uuid", "guid", "nummer", "numero", "kennung", "hash", "identifier", "key"}
_ALONE = _words(
    "pid ssn mrn nhs nino uid username screenname login loginname nickname userid hhid seqn bsn idnp matricule usern "
    "handle usubjid ptid ptno patno patnr rid eid iid empi mpi npi upi mbi hicn hcn vpn vpnr vpcode probandencode kvnr "
    "kvnummer versnr ahvnr ahv svnr svnummer steuerid ausweisnr insee nir ipp cpf curp codicefiscale nss nhc aadhaar "
    "nric pesel personnummer cpr cprnr fodselsnummer hetu lopnr pidp mergeid hhidpn idauniq nomemencr xwaveid caseid "
    "pseudonym pseudoid pseudonymid participantcode personalnummer"
)
_NEUTRAL = _words(
    "the unique hash hashed anon anonymous anonymised anonymized pseudo pseudonym encrypted masked src source original "
    "internal external ref study primary new old"
)
_PLURALS = ("s", "es", "en", "n", "e")
_NUMBER_ALONE = re.compile(rf"{_NUMBER}|nhs|ssn|mrn|guid")
_PERSON_WORD = re.compile(rf"(?:{_PERSON})(?:en|n|s|e)?(?:{_NUMBER})?")
_HOUSEHOLD_WORD = re.compile(rf"(?:{_HOUSEHOLD})(?:en|n|s)?(?:{_NUMBER})?")
_COUNTED = re.compile(rf"(?:{_PERSON}|{_HOUSEHOLD})e?s|families|people|personen|kunden")
_PERSON_NUMBER = re.compile(rf"(?:{_PERSON}|{_WITH_NUMBER})(?:en|n|s|e)?(?:{_NUMBER})")
_WITH_NUMBER_WORD = re.compile(rf"(?:{_WITH_NUMBER})s?")

_NAMES = _words(
    "firstname lastname surname middlename givenname familyname fullname forename maidenname christianname fname lname "
    "namefirst namelast patientname customername clientname employeename studentname personname username contactname "
    "membername vorname nachname familienname zuname geburtsname rufname prenom nomdefamille nom nomclient nomcomplet "
    "nomprenom nombre apellidopaterno apellidomaterno apellido apellidos primerapellido segundoapellido nombres "
    "voornaam achternaam familienaam voorletters cognome nome screenname nickname vornamen nachnamen prenoms"
)
_CONTACTS = _words(
    "email emailaddress mail mailaddress emailadresse courriel correo correoelectronico phone phonenumber phoneno "
    "phonenr telephone telephonenumber tel telnr telno telefon telefonnummer telefono telefoon telefoonnummer mobile "
    "mobilenumber mobilephone cellphone handy handynummer fax faxnumber address streetaddress homeaddress street "
    "streetname strasse hausnummer adresse anschrift wohnadresse rue direccion domicilio calle adres straat straatnaam "
    "huisnummer indirizzo via ipaddress ipaddr macaddress iban creditcard creditcardnumber cardnumber ccnumber "
    "licenseplate kennzeichen passport passportnumber passportno socialsecuritynumber sozialversicherungsnummer "
    "nationalid dni nif imei telephoneno telefonnr addressline portable movil postadresse"
)
_TEXTS = _words(
    "text freetext fulltext comment comments note notes remark remarks message body narrative description review "
    "reviewtext tweet bio abstract summary feedback bemerkung bemerkungen kommentar kommentare notiz notizen freitext "
    "beschreibung anmerkung anmerkungen nachricht remarque remarques commentaire commentaires texte texto comentario "
    "comentarios observacion observaciones observations descripcion mensaje nota notas opmerking opmerkingen "
    "omschrijving toelichting notitie bericht testo commento"
)
_PLACES = _words(
    "zip zipcode postal postalcode postcode plz postleitzahl codepostal codigopostal cap zip5 zip3 fips fipscode tract "
    "puma geoid lsoa ags codepostale"
)
_PLACE_WORDS = {"zip", "zipcode", "postcode", "plz", "postleitzahl"}
_WEIGHTS = _words(
    "wgt pweight perwt hhwt fnlwgt finalwgt finalwt finalweight wtfinl asecwt earnwt pwgtp wgtp svyweight surveyweight "
    "surveyweights surveywt surveywgt sampleweight samplingweight samplewt sampwt designweight dweight personweight "
    "personwt hhweight householdweight populationweight popweight pspwght pspweight anweight weightfinal phrf hhrf "
    "expansionfactor facexp factorexp factorexpansion factordeexpansion gewichtung hochrechnungsfaktor ponderation "
    "ponderacion weegfactor wegingsfactor fexp llcpwt perweight statisticalweight weighting weightingfactor "
    "weightfactor poidsfinal designgewicht"
)
_PERHAPS_WEIGHTS = {"weight", "weights", "gewicht", "poids", "peso", "wt"}
_WAVES = re.compile(r"wt(?:mec|int|saf|dr)\d?[a-z]?\d*(?:yr)?|[a-z]?weight\d{2,4}|rwt\w*")
_BODIES = _words(
    "height size bmi length kg lbs dose systolic diastolic bp hp horsepower mpg cylinders volume width cm waist hip "
    "carat groesse grosse taille altura lengte pulse gestation birth calories product parcel shipping freight engine "
    "displacement"
)


def words_of(name: str) -> list[str]:
    """Return the words of a column's name, in small letters without accents.

    Example:
        >>> words_of("customerId"), words_of("Prénom du patient"), words_of("HH_ID")
        (['customer', 'id'], ['prenom', 'du', 'patient'], ['hh', 'id'])
    """
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", plain)
    return re.findall(r"[a-z]+\d*|\d+", parted.lower())


def role_of(name: str) -> Role | None:
    """Return the role that a name speaks of; None if none of these.

    Example:
        >>> [role_of(name) for name in ("patient_id", "Kundennummer", "hhid", "first_name", "Straße", "zip", "perwt")]
        ['person', 'person', 'household', 'name', 'contact', 'place', 'weight']
        >>> [role_of(name) for name in ("customer_city", "patient_age", "user_agent", "order_id", "amount")]
        [None, None, None, None, None]
    """
    words = words_of(name)
    if not words:
        return None
    whole = "".join(words)
    spelled = [word.rstrip("0123456789") or word for word in words]
    clear = [word for word in spelled if word not in _NEUTRAL]  # `email_hash` is one of addresses
    ends = {"".join(some[-n:]) for some in (words, spelled, clear) for n in range(1, 4)}
    if whole in _WEIGHTS or _WAVES.fullmatch(whole):
        return "weight"
    if whole in _PERHAPS_WEIGHTS:
        return "perhaps weight"
    listed: tuple[tuple[Role, frozenset[str]], ...] = (
        ("name", _NAMES), ("contact", _CONTACTS), ("text", _TEXTS), ("place", _PLACES),
    )  # fmt: skip
    of_person = _person(spelled, whole)
    if set(words) & _PLACE_WORDS:
        return "place"
    for role, names in listed:
        if ends & names and not (of_person and whole in _ALONE):
            return role
    return of_person


def _person(words: list[str], whole: str) -> Role | None:
    """Return whether a name speaks of a person or a household, and of nothing that either has."""
    rest = [word for word in words if word not in _NEUTRAL and not word.isdigit()]
    if {whole, "".join(rest)} & _ALONE:
        return "household" if "hhid" in (whole, "".join(rest)) else "person"
    numbers = [word for word in rest if _NUMBER_ALONE.fullmatch(word)]
    others = [word for word in rest if word not in numbers]
    if not numbers and _COUNTED.fullmatch(whole):
        return None  # customers: how many there are
    persons = [word for word in others if _PERSON_WORD.fullmatch(word) or _PERSON_NUMBER.fullmatch(word)]
    homes = [word for word in others if _HOUSEHOLD_WORD.fullmatch(word)]
    with_number = [word for word in others if numbers and _WITH_NUMBER_WORD.fullmatch(word)]
    known = {*persons, *homes, *with_number}
    if not known or any(word not in known for word in others):
        return None
    return "household" if homes and not persons else "person"


def numbers_people(name: str) -> bool:
    """Whether a column's name says that it holds numbers of persons or households: `member` may be a truth value.

    Example:
        >>> numbers_people("patient_id"), numbers_people("Kundennummer"), numbers_people("member")
        (True, True, False)
    """
    words = words_of(name)
    is_number = "".join(words) in _ALONE or any(re.search(rf"(?:{_NUMBER})$", word) for word in words)
    return is_number and role_of(name) in ("person", "household")


def names_people(name: str) -> bool:
    """Whether a column's name alone says that it names people, households or records.

    Example:
        >>> names_people("patient_id"), names_people("order_no"), names_people("e-mail"), names_people("age")
        (True, True, True, False)
    """
    if role_of(name) in PEOPLE:
        return True
    words = words_of(name)
    return bool(words) and words[-1] in _OF_RECORDS


def stem_of(name: str) -> str:
    """Return a name without what says that it is a number.

    Example:
        >>> stem_of("patient_id"), stem_of("PatientNr"), stem_of("Kundennummer"), stem_of("id")
        ('patient', 'patient', 'kunden', '')
    """
    words = [word for word in words_of(name) if not _NUMBER_ALONE.fullmatch(word)]
    return "".join(re.sub(rf"(?<=\w\w\w)(?:{_NUMBER})$", "", word) for word in words)


def is_plural(word: str, other: str) -> bool:
    """Whether two words are one, of which either may be a plural.

    Example:
        >>> is_plural("visits", "visit"), is_plural("city", "cities"), is_plural("visit", "ward")
        (True, True, False)
    """
    first, second = sorted((word, other), key=len)
    in_y = first.endswith("y") and second == f"{first[:-1]}ies"
    return first == second or in_y or (bool(first) and second in {first + ending for ending in _PLURALS})


def measures_bodies(names: Iterable[str]) -> bool:
    """Whether names of columns speak of bodies or goods, so that a weight beside them is in kilograms.

    Example:
        >>> measures_bodies(["age", "height_cm"]), measures_bodies(["age", "region"])
        (True, False)
    """
    return any(word in _BODIES for name in names for word in words_of(name))
