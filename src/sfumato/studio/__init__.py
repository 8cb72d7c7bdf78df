"""A local page that leads from a table to a release: `sfumato studio`."""

from sfumato.studio.server import serve as serve
from sfumato.studio.session import StudioSession as StudioSession
