# ActiveRecord, Sequel and pg: reflection, queries, cursors, savepoints, single rows, pipelines.
require "active_record"
require "active_record/schema_dumper"
require "sequel"
require "pg"
require "stringio"

URL = ARGV[0]
$stderr = File.open(File::NULL, "w")

def works(name)
  puts "ok #{name} #{yield.inspect.tr("\n", " ")[0, 150]}"
rescue StandardError => e
  puts "failed #{name} #{e.class} #{e.message.tr("\n", " ")[0, 400]}"
end

def refused(name, state)
  yield
  puts "failed #{name} was not refused"
rescue StandardError => e
  error = e.respond_to?(:cause) && e.cause || e
  got = error.is_a?(PG::Error) && error.result ? error.result.error_field(PG::Result::PG_DIAG_SQLSTATE) : error.class
  puts got == state ? "ok #{name} #{state}" : "failed #{name} #{got} in place of #{state}"
end

def is(want, got)
  raise "#{got.inspect} in place of #{want.inspect}" unless want == got
  got
end

puts "version activerecord #{ActiveRecord::VERSION::STRING} sequel #{Sequel::VERSION} pg #{PG::VERSION}"
ActiveRecord::Base.establish_connection(URL)
class Person < ActiveRecord::Base; self.table_name = "people"; end
class MemoryParticipant < ActiveRecord::Base
  belongs_to :memory
  belongs_to :person
end
class Memory < ActiveRecord::Base
  has_many :memory_participants
  has_many :people, through: :memory_participants, source: :person
end
c = ActiveRecord::Base.connection
works("tables") { is(%w[memories memory_participants people], c.tables.sort) }
works("columns") { Memory.columns.map { |x| [x.name, x.type, x.null] } }
works("keys") { [is("id", c.primary_key("memories")), c.indexes("memories").map(&:name), is("memories", c.foreign_keys("memory_participants")[0].to_table)] }
works("checks, extensions") { [c.check_constraints("memories"), c.extensions] }
works("dump") { ActiveRecord::SchemaDumper.dump(c, s = StringIO.new); s.string.lines.size }
count = Memory.count
works("where") { Memory.where("title ILIKE ?", "%a%").order(occurred_at: :desc).limit(2).pluck(:title) }
works("find_each") { n = 0; Memory.find_each(batch_size: 5) { n += 1 }; is(count, n) }
works("includes") { Memory.includes(:people).limit(3).map { |m| m.people.size } }
works("joins") { Memory.joins(:people).group("people.id").count.size }
works("isolation") { ActiveRecord::Base.transaction(isolation: :serializable) { is(count, Memory.count) } }
works("savepoint") do
  ActiveRecord::Base.transaction do
    begin
      ActiveRecord::Base.transaction(requires_new: true) { c.execute("SELECT 1 / 0") }
    rescue ActiveRecord::StatementInvalid
      nil
    end
    is(count, Memory.count)
  end
end
refused("save", "42501") { Person.first.update!(name: "x") }
refused("advisory lock", "42501") { c.get_advisory_lock(1) }

DB = Sequel.connect(URL)
works("sequel schema") { [DB.tables.size, DB.views, DB.schema(:memories).map(&:first), DB.indexes(:memories).keys, is(:memories, DB.foreign_key_list(:memory_participants)[0][:table])] }
works("sequel extensions") { DB.extension(:pg_array, :pg_json, :pg_enum, :pg_range, :pg_row); DB["SELECT ARRAY[1, 2] AS a, '{}'::jsonb AS j"].first }
works("sequel paged") { DB.transaction { n = 0; DB[:memories].order(:id).paged_each(rows_per_fetch: 3) { n += 1 }; is(count, n) } }
works("sequel cursor") { n = 0; DB[:memories].use_cursor.each { n += 1 }; is(count, n) }
works("sequel prepared") { DB[:memories].where(id: :$i).prepare(:select, :byid).call(i: DB[:memories].get(:id)).size }
works("sequel copy") { is(count, DB.copy_table(DB[:memories].select(:id)).lines.size) }

p = PG.connect(URL)
works("pg single rows") { p.send_query("SELECT id FROM memories"); p.set_single_row_mode; n = 0; while (r = p.get_result) do n += r.ntuples end; is(count, n) }
works("pg types") { p.type_map_for_results = PG::BasicTypeMapForResults.new(p); is(1, p.exec("SELECT 1").getvalue(0, 0)) }
works("pg pipeline") { p.enter_pipeline_mode; p.send_query_params("SELECT $1::int", [1]); p.pipeline_sync; r = p.get_result.ntuples; p.get_result; p.get_result; p.exit_pipeline_mode; is(1, r) }
puts "done"
