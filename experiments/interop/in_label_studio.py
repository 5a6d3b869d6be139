"""Import tasks and their interface into a new project of Label Studio and export it; runs in its environment."""

import os
import sys
from pathlib import Path

source, config, out = map(Path, sys.argv[1:])
out.mkdir()
os.environ |= {
    "BASE_DATA_DIR": str(out),
    "DJANGO_DB": "sqlite",
    "DJANGO_SETTINGS_MODULE": "core.settings.label_studio",
    "COLLECT_ANALYTICS": "0",
    "LATEST_VERSION_CHECK": "0",
    "LOG_LEVEL": "ERROR",
}
import label_studio  # noqa: E402

sys.path.insert(0, str(Path(label_studio.__file__).parent))
import django  # noqa: E402

django.setup()
from django.core.management import call_command  # noqa: E402
from rest_framework.test import APIClient  # noqa: E402

call_command("migrate", verbosity=0)
from organizations.models import Organization  # noqa: E402
from projects.models import Project  # noqa: E402
from users.models import User  # noqa: E402

user = User.objects.create_user(email="ann@example.org", password=None)
organization = Organization.create_organization(created_by=user, title="us")
user.active_organization = organization
user.save()
project = Project.objects.create(
    title="drinks", label_config=config.read_text(), created_by=user, organization=organization
)
client = APIClient(HTTP_HOST="localhost")
client.force_authenticate(user)
answer = client.post(f"/api/projects/{project.id}/import", source.read_bytes(), content_type="application/json")
assert answer.status_code == 201, answer.content
for form, name in (("JSON", "all.json"), ("JSON_MIN", "min.json"), ("CSV", "all.csv")):
    answer = client.get(f"/api/projects/{project.id}/export", {"exportType": form})
    assert answer.status_code == 200, answer.content
    (out / name).write_bytes(b"".join(answer.streaming_content) if answer.streaming else answer.content)
