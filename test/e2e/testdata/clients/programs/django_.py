"""Django: inspectdb, the introspection its migrations use, and the ORM."""
from check import url, works, refused, done
import io
import django
from django.conf import settings

print("version", django.__version__)
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": url.path[1:], "USER": url.username, "PASSWORD": url.password, "HOST": url.hostname, "PORT": url.port}},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.postgres"], USE_TZ=True, TIME_ZONE="UTC", DEFAULT_AUTO_FIELD="django.db.models.AutoField")
django.setup()
from django.core.management import call_command
from django.db import connection, models, transaction
from django.db.models import Count, Exists, F, Max, Min, OuterRef, Window
from django.db.models.functions import RowNumber, TruncMonth


def inspectdb():
    out = io.StringIO()
    call_command("inspectdb", stdout=out)
    for part in ("class Memories(", "memory = models.OneToOneField(Memories", "id = models.UUIDField(primary_key=True)", "metadata = models.JSONField("):
        assert part in out.getvalue(), out.getvalue()


works("inspectdb", inspectdb)
with connection.cursor() as c:
    look = connection.introspection
    works("tables", lambda: look.get_table_list(c))
    for table in ("memories", "people", "memory_participants"):
        for what in ("get_table_description", "get_relations", "get_key_columns", "get_constraints", "get_primary_key_column", "get_sequences"):
            works(f"{what} of {table}", lambda: getattr(look, what)(c, table))


class Memory(models.Model):
    id = models.UUIDField(primary_key=True)
    title = models.TextField()
    body = models.TextField()
    metadata = models.JSONField()
    occurred_at = models.DateTimeField()

    class Meta:
        app_label, managed, db_table = "x", False, "memories"


class Person(models.Model):
    id = models.UUIDField(primary_key=True)
    name = models.TextField()

    class Meta:
        app_label, managed, db_table = "x", False, "people"


class Participant(models.Model):
    memory = models.ForeignKey(Memory, models.CASCADE, primary_key=True)
    person = models.ForeignKey(Person, models.CASCADE)

    class Meta:
        app_label, managed, db_table = "x", False, "memory_participants"


works("count", Memory.objects.count)
works("filter", lambda: list(Memory.objects.filter(title__icontains="a").order_by("-occurred_at")[:3].values_list("title", flat=True)))
works("json", lambda: list(Memory.objects.filter(metadata__mood="calm").values("title")[:3]))
works("json contains", lambda: Memory.objects.filter(metadata__contains={"mood": "calm"}).count())
works("json has_key", lambda: Memory.objects.filter(metadata__has_key="mood").count())
works("join", lambda: list(Participant.objects.filter(person__name__startswith="A").select_related("memory")[:2]))
works("annotate", lambda: list(Participant.objects.values("person__name").annotate(n=Count("memory")).order_by("-n")[:3]))
works("trunc", lambda: list(Memory.objects.annotate(m=TruncMonth("occurred_at")).values("m").annotate(n=Count("id"))[:3]))
works("year", lambda: Memory.objects.filter(occurred_at__year=2024).count())
works("window", lambda: list(Memory.objects.annotate(r=Window(RowNumber(), order_by=F("occurred_at").asc())).values("r")[:2]))
works("exists", lambda: list(Person.objects.filter(Exists(Participant.objects.filter(person=OuterRef("pk")))).values("name")[:2]))
works("subquery", lambda: Memory.objects.filter(pk__in=Participant.objects.values("memory")).count())
works("regex", lambda: Memory.objects.filter(title__iregex="a.*").count())
works("dates", lambda: list(Memory.objects.dates("occurred_at", "year")))
works("iterator", lambda: len(list(Memory.objects.iterator(chunk_size=3))) > 3 or 1 / 0)
works("aggregate", lambda: Memory.objects.aggregate(Max("occurred_at"), Min("occurred_at")))


def search():
    from django.contrib.postgres.search import SearchQuery, SearchRank, SearchVector
    return list(Memory.objects.annotate(rank=SearchRank(SearchVector("body"), SearchQuery("coffee"))).filter(rank__gt=0)[:2])


def savepoints():
    with transaction.atomic():
        try:
            with transaction.atomic():
                list(Memory.objects.raw("SELECT nope FROM memories"))
        except django.db.ProgrammingError:
            pass
        return Memory.objects.count()


works("search", search)
works("savepoints", savepoints)
refused("update", "42501", lambda: Memory.objects.update(title="x"))
refused("explain", "0A000", lambda: Memory.objects.all().explain())
works("is_usable", lambda: connection.is_usable() or 1 / 0)
done()
