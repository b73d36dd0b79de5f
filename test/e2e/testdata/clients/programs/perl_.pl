# DBD::Pg: what DBI asks of a database, placeholders, arrays, COPY, savepoints, asynchronous queries.
use strict;
use warnings;
use DBI;
use DBD::Pg;
$| = 1;
my ($host, $port, $database, $user, $password) = @ARGV;
my $d = DBI->connect("dbi:Pg:dbname=$database;host=$host;port=$port", $user, $password, { RaiseError => 1, PrintError => 0 });
print "version $DBD::Pg::VERSION\n";

sub works {
    my ($name, $f, $want) = @_;
    my $got = eval { $f->() };
    my $error = $@;
    $error =~ s/\s+/ /g;
    $got = '' unless defined $got;
    if ($error ne '') { print "failed $name $error\n" }
    elsif (defined $want && $got ne $want) { print "failed $name $got in place of $want\n" }
    else { print "ok $name $got\n" }
}

sub refused {
    my ($name, $state, $f) = @_;
    eval { $f->() };
    print $d->state eq $state ? "ok $name $state\n" : "failed $name " . $d->state . " in place of $state\n";
}

my $count = $d->selectrow_array('SELECT count(*) FROM memories');
works('tables', sub { join ',', $d->tables('', 'public', '%', 'TABLE') }, 'public.memories,public.memory_participants,public.people');
works('columns', sub { scalar @{ $d->column_info('', 'public', 'memories', '%')->fetchall_arrayref } });
works('primary key', sub { join ' ', $d->primary_key('', 'public', 'memories') }, 'id');
works('foreign key', sub { join ' ', @{ $d->foreign_key_info(undef, undef, undef, undef, 'public', 'memory_participants')->fetchall_arrayref->[0] }[2, 3, 6, 7, 12, 14] }, 'memories id memory_participants memory_id memories_pkey PRIMARY');
works('statistics', sub { scalar @{ $d->statistics_info(undef, 'public', 'memories', 0, 0)->fetchall_arrayref } });
works('ping', sub { $d->ping && $d->pg_ping }, 1);
works('placeholders', sub { scalar @{ $d->selectall_arrayref('SELECT id, title FROM memories WHERE title LIKE ? LIMIT 2', undef, '%') } }, 2);
works('arrays', sub { my $id = $d->selectrow_array('SELECT id FROM memories'); $d->selectrow_array('SELECT count(*) FROM memories WHERE id = ANY (?)', undef, [$id]) }, 1);
works('copy', sub { $d->do('COPY (SELECT id FROM memories) TO STDOUT'); my ($n, $line) = (0); $n++ while $d->pg_getcopydata($line) >= 0; $n }, $count);
works('savepoint', sub { $d->begin_work; $d->pg_savepoint('a'); eval { $d->do('SELECT 1 / 0') }; $d->pg_rollback_to('a'); my $n = $d->selectrow_array('SELECT count(*) FROM memories'); $d->commit; $n }, $count);
works('asynchronous', sub { my $s = $d->prepare('SELECT count(*) FROM memories', { pg_async => DBD::Pg::PG_ASYNC() }); $s->execute; $s->pg_result; $s->fetchrow_array }, $count);
works('again and again', sub { my $s = $d->prepare('SELECT ?::int'); $s->execute($_) for 1 .. 4; $s->fetchrow_array }, 4);
refused('lastval', '42501', sub { $d->do('SELECT lastval()') });
print "done\n";
