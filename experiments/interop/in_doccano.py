"""Import a file into a new project of doccano and export it as JSONL and CSV; runs in the environment of doccano."""

import os
import sys
import zipfile
from pathlib import Path

source, out = map(Path, sys.argv[1:])
out.mkdir()
os.environ |= {
    "DATABASE_URL": f"sqlite:///{out}/doccano.db",
    "DJANGO_SETTINGS_MODULE": "config.settings.development",
    "MEDIA_ROOT": str(out),
}
import backend  # noqa: E402

sys.path.insert(0, str(Path(backend.__file__).parent))
import django  # noqa: E402

django.setup()
from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402

call_command("migrate", verbosity=0)
from data_export.celery_tasks import export_dataset  # noqa: E402
from data_import.datasets import load_dataset  # noqa: E402
from data_import.pipeline.catalog import create_file_format  # noqa: E402
from data_import.pipeline.readers import FileName  # noqa: E402
from projects.models import ProjectType, TextClassificationProject  # noqa: E402

user = get_user_model().objects.create_user("ann")
kind = ProjectType.DOCUMENT_CLASSIFICATION
project = TextClassificationProject.objects.create(
    name="drinks", project_type=kind, created_by=user, collaborative_annotation=True
)
given = [FileName(str(source), source.name, source.name)]
dataset = load_dataset(kind, create_file_format("JSONL"), given, project, column_data="text", column_label="labels")
dataset.save(user, batch_size=100)
assert not dataset.errors, dataset.errors
for form, name in (("JSONL", "all.jsonl"), ("CSV", "all.csv")):
    with zipfile.ZipFile(export_dataset(project.id, form)) as archive:
        archive.extract(name, out)
