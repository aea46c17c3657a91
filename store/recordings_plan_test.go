package store

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/levels"
)

// manyRecordings fills a project with recordings that begin one second apart. Every tenth is
// deleted. Ten belong to the call c, and ten to the conference r. A tenth is tied to the subscriber
// s, the rest to others. Ten are one-way, and every third has dead air.
func manyRecordings(t testing.TB, c Config, s *Store, project string, n int) {
	t.Helper()
	filled(t, c, s,
		fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %[1]d)
		INSERT INTO recordings (id, sid, project_id, call_sid, conference_sid, from_address, to_address,
			direction, source, track, start_time, status, error_code, codec, sample_rate, channels, bits, frames,
			bytes, sha256, repairs, price, levels, flags, from_tail, to_tail, words, created, updated, deleted)
		SELECT '01900000-0000-7000-8000-' || CAST(100000000000 + i AS TEXT), 'sid-' || CAST(i AS TEXT), '%[2]s',
			CASE WHEN i %% %[3]d = 1 THEN 'c' WHEN i %% %[3]d <> 2 THEN 'call-' || CAST(i AS TEXT) END,
			CASE WHEN i %% %[3]d = 2 THEN 'r' END, '+15551234', '/private/alice',
			'inbound', 'DialVerb', 'both', 0, 'completed', '', 'pcm_s16le', 8000, 1, 16, 8000,
			16044, 'sha', '', 2500, '1 0 -3.23 -18.87 -19.03 0.92 0.1 0 0 0.0461 0.16 5.38 0.92',
			CASE WHEN i %% %[3]d = 3 THEN 2 WHEN i %% 3 = 0 THEN 8 ELSE 0 END,
			'43215551', '', ' sales ' || CASE WHEN i %% 3 = 0 THEN 'ada n' ELSE 'bob n' END || CAST(i AS TEXT) || ' ',
			CAST(i AS BIGINT) * 1000000, CAST(i AS BIGINT) * 1000000,
			CASE WHEN i %% 10 = 5 THEN 1 ELSE 0 END FROM n`, n-1, project, n/10),
		`INSERT INTO recording_subscribers (subscriber_id, recording_id)
		SELECT CASE WHEN sid LIKE '%3' THEN 's' ELSE sid END, id FROM recordings`,

		`INSERT INTO recording_tags (project, tag, recording_id)
		SELECT project_id, CASE WHEN sid LIKE '%2' THEN 'even' ELSE 'odd' END, id FROM recordings`,
		`INSERT INTO recording_words (project, word, recording_id)
		SELECT project_id, 'sales', id FROM recordings UNION ALL
		SELECT project_id, CASE WHEN words LIKE '% ada %' THEN 'ada' ELSE 'bob' END, id FROM recordings UNION ALL
		SELECT project_id, REPLACE(sid, 'sid-', 'n'), id FROM recordings`,
		`UPDATE recordings SET hold = 'court' WHERE sid LIKE '%44'`,
	)
}

// filters returns the filters that a list of recordings can have.
func filters(project string) map[string]recordings.Filter {
	at := time.UnixMilli(0x019000000000)
	owner := recordings.Owner{ProjectID: project}
	tied := recordings.Owner{ProjectID: project, SubscriberID: "s"}

	return map[string]recordings.Filter{
		"all":            {Owner: owner},
		"and deleted":    {Owner: owner, IncludeDeleted: true},
		"of a call":      {Owner: owner, CallSid: "c"},
		"of conference":  {Owner: owner, ConferenceSid: "r"},
		"of a time":      {Owner: owner, CreatedFrom: at, CreatedBefore: at.Add(time.Hour)},
		"before":         {Owner: owner, CreatedBefore: at.Add(time.Hour), IncludeDeleted: true},
		"tied":           {Owner: tied},
		"tied, of time":  {Owner: tied, CreatedFrom: at},
		"tied, of call":  {Owner: tied, CallSid: "c"},
		"of call, dated": {Owner: owner, CallSid: "c", CreatedFrom: at},
		"a direction":    {Owner: owner, Direction: "outbound"},
		"rare flag":      {Owner: owner, Flag: levels.OneWay},
		"flag":           {Owner: owner, Flag: levels.DeadAir},
		"flag, dated":    {Owner: owner, Flag: levels.OneWay, CreatedFrom: at},
		"of call, flag":  {Owner: owner, CallSid: "c", Flag: levels.DeadAir},
		"calls":          {Owner: owner, CallBegins: "c"},
		"calls of few":   {Owner: owner, CallBegins: "call-100"},
		"calls, dated":   {Owner: owner, CallBegins: "call-", CreatedFrom: at, CreatedBefore: at.Add(time.Hour)},
		"calls, tied":    {Owner: tied, CallBegins: "call-"},
		"calls, party":   {Owner: owner, CallBegins: "call-", Party: "+15551234"},
		"calls, nobody":  {Owner: owner, CallBegins: "call-", Party: "+1999"},
		"party":          {Owner: owner, Party: "+1 555 1234"},
		"party, end":     {Owner: owner, Party: "555-1234"},
		"party, begins":  {Owner: owner, PartyBegins: "+1555"},
		"party, abroad":  {Owner: owner, Party: "+49 1555 1234"},
		"party, lasting": {Owner: owner, Party: "+15551234", DurationFrom: time.Second},
		"lasting":        {Owner: owner, DurationFrom: time.Second, DurationBefore: time.Minute},
		"short":          {Owner: owner, DurationBefore: time.Second},
		"party, called":  {Owner: owner, Party: "/private/alice", CreatedFrom: at},
		"party, flag":    {Owner: owner, Party: "+15551234", Flag: levels.OneWay},
		"party, tied":    {Owner: tied, Party: "+15551234"},
		"nobody":         {Owner: owner, Party: "+1999"},
		"tag":            {Owner: owner, Tag: "even"},
		"tag, dated":     {Owner: owner, Tag: "even", CreatedFrom: at},
		"tag, tied":      {Owner: tied, Tag: "even"},
		"tag, party":     {Owner: owner, Tag: "even", Party: "+15551234"},
		"tag, flag":      {Owner: owner, Tag: "even", Flag: levels.OneWay},
		"held":           {Owner: owner, Held: true},
		"named":          {Owner: owner, Name: "SALES"},
		"named few":      {Owner: owner, Name: "n100"},
		"named, dated":   {Owner: owner, Name: "n100", CreatedFrom: at},
		"named both":     {Owner: owner, Name: "sales n100"},
		"named common":   {Owner: owner, Name: "ada sales"},
		"named begin":    {Owner: owner, Name: "n"},
		"named never":    {Owner: owner, Name: "ada bob"},
		"named nobody":   {Owner: owner, Name: "sale ida"},
		"named, tag":     {Owner: owner, Name: "sales", Tag: "even"},
		"named few, tag": {Owner: owner, Name: "n10", Tag: "even"},
		"named, tied":    {Owner: tied, Name: "sales"},
		"named few tied": {Owner: tied, Name: "n10"},
		"named, flag":    {Owner: owner, Name: "ada", Flag: levels.OneWay},
		"named few flag": {Owner: owner, Name: "n10", Flag: levels.DeadAir},
		"named few held": {Owner: owner, Name: "n10", Held: true},
		"named, called":  {Owner: owner, Name: "ada", Direction: "inbound"},
		"named, party":   {Owner: owner, Name: "ada", Party: "+15551234"},
		"named, of call": {Owner: owner, Name: "ada", CallSid: "c"},
		"named, calls":   {Owner: owner, Name: "ada", CallBegins: "call-"},
	}
}

// TestRecordingPlans shows that all lists of recordings are read in the order of an index: nothing
// is sorted, and no table is scanned.
func TestRecordingPlans(t *testing.T) { EachDatabase(t, testRecordingPlans) }

func testRecordingPlans(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	manyRecordings(t, c, s, "p", 10_000)
	explain := "EXPLAIN QUERY PLAN "
	if c.URL != "" {
		explain = "EXPLAIN "
	}

	filled(t, c, s, `ANALYZE`)
	for name, f := range filters("p") {
		for _, from := range []string{"", "01900000-0000-7000-8000-100000005001"} {
			for _, dir := range []direction{forward, backward} {
				if from == "" && dir == backward {
					continue
				}

				who, err := s.partyOf(t.Context(), f)
				if err != nil {
					t.Fatal(err)
				}

				words, err := s.wordsFor(t.Context(), f)
				if err != nil {
					t.Fatal(err)
				}

				l := recordingListing(f, from, who, words)
				q := l.query(51, dir)
				for _, bound := range []string{`[ (]id\)? <`, `[ (]id\)? >`, `call_sid <`, `call_sid >`} {
					n := len(regexp.MustCompile(bound).FindAllString(q.sql, -1))
					if n > max(1, len(l.ways)) {
						t.Errorf("%s, from %q: an index can use one bound on each side, and there are %d in %s",
							name, from, n, q.sql)
					}
				}

				plan := strings.Join(explained(t, s, explain+q.sql, q.args), "\n")
				// Each branch of a union reads only one page of rows, so it may sort them.
				plan = fewNamed.ReplaceAllString(pageOfWay.ReplaceAllString(plan, ""), "")
				for _, bad := range []string{"SCAN", "TEMP B-TREE", "Seq Scan", "Sort"} {
					if strings.Contains(plan, bad) && !mayPick(c, name, plan) {
						t.Errorf("%s, from %q: the plan contains %q:\n%s", name, from, bad, plan)
					}
				}
			}
		}
	}
}

// TestBeginningPlans shows that the values that begin with a text are found in an index: no table is
// scanned.
func TestBeginningPlans(t *testing.T) { EachDatabase(t, testBeginningPlans) }

func testBeginningPlans(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	manyRecordings(t, c, s, "p", 10_000)
	filled(t, c, s, `ANALYZE`)
	explain, column := "EXPLAIN QUERY PLAN ", regexp.MustCompile(`SEARCH recordings USING COVERING INDEX`)
	if c.URL != "" {
		explain, column = "EXPLAIN ", regexp.MustCompile(`Index (Only )?Scan`)
	}

	for _, name := range []string{plain("from_address"), plain("to_address"), "from_tail", "to_tail"} {
		plan := strings.Join(explained(t, s, explain+valuesBeginning(name), []any{"p", "+1", "+1" + last, 31}), "\n")
		if !column.MatchString(plan) || regexp.MustCompile(`SCAN recordings|Seq Scan on recordings`).MatchString(plan) {
			t.Errorf("%s: the plan scans recordings, or does not search the column:\n%s", name, plan)
		}
	}
}

// TestStoredPlan shows that the stored bytes of a project are added up from an index alone.
func TestStoredPlan(t *testing.T) {
	c := Config{Dir: t.TempDir(), Audit: auditKey(t)}
	s, _, _ := grantRows(t, c)
	manyRecordings(t, c, s, "p", 100)
	plan := strings.Join(explained(t, s, "EXPLAIN QUERY PLAN "+sumStored, []any{"p"}), "\n")
	if !strings.Contains(plan, "SEARCH recordings USING COVERING INDEX recordings_stored (project_id=?)") {
		t.Errorf("the plan does not search the covering index:\n%s", plan)
	}
	if n, err := s.StoredBytes(t.Context(), "p"); err != nil || n != 90*16044 {
		t.Errorf("StoredBytes = %d, %v, want %d", n, err, 90*16044)
	}
}

// pageOfWay matches the steps with which SQLite reads the page that one branch of a union returned.
var pageOfWay = regexp.MustCompile(`SCAN way\d\n?(USE TEMP B-TREE FOR ORDER BY)?`)

// fewNamed matches the steps with which SQLite reads and sorts the few recordings with a word.
var fewNamed = regexp.MustCompile(`CO-ROUTINE named\n.*\nUSE TEMP B-TREE FOR DISTINCT\nSCAN named\n` +
	`(.*\n){1,2}USE TEMP B-TREE FOR ORDER BY`)

// mayPick reports whether a plan may sort because the filter leaves only a few rows, for which
// PostgreSQL prefers sorting.
func mayPick(c Config, name, plan string) bool {
	return c.URL != "" && (strings.Contains(name, "call") || strings.Contains(name, "party") ||
		strings.HasPrefix(name, "named") || name == "nobody" || name == "tag, tied") &&
		!strings.Contains(plan, "Seq Scan")
}

// explained returns the lines of the plan for a query.
func explained(t *testing.T, s *Store, sql string, args []any) []string {
	t.Helper()
	ctx := context.Background()
	lines, err := gather(ctx, s.read(), "explaining", func(row scanner) (line string, err error) {
		var a, b, c any
		if strings.HasPrefix(sql, "EXPLAIN QUERY PLAN") {
			return line, row.Scan(&a, &b, &c, &line)
		}
		return line, row.Scan(&line)
	}, sql, args...)
	if err != nil {
		t.Fatal(err)
	}

	if len(lines) == 0 {
		t.Fatal("there is no plan")
	}
	return lines
}

// TestRecordingPages shows that each page of a list contains the recordings that match the filter,
// in order, no matter which query finds them.
func TestRecordingPages(t *testing.T) { EachDatabase(t, testRecordingPages) }

// wantPageBefore checks that the page at prev has some of the ids, in order, and that nothing is skipped
// between it and the page at from.
func wantPageBefore(t *testing.T, s *Store, f recordings.Filter, from, prev string, ids []string) {
	t.Helper()
	p, err := s.ListRecordings(t.Context(), f, page.Query{Size: 300, From: prev})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Items) == 0 {
		t.Fatalf("the page at %q before %s is empty", prev, from)
	}
	found := make([]string, len(p.Items))
	for i, r := range p.Items {
		found[i] = r.ID
	}

	first := slices.Index(ids, found[0])
	end := first + len(found)
	if first < 0 || end > len(ids) || !slices.Equal(found, ids[first:end]) ||
		end < len(ids) && p.Next != ids[end] {
		t.Errorf("the page at %q before %s has %d recordings, and %q follows it", prev, from, len(found), p.Next)
	}
}

func testRecordingPages(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	manyRecordings(t, c, s, "p", 2000)
	want := map[string]int{
		"all": 1800, "and deleted": 2000, "of a call": 10, "of conference": 10, "of a time": 1800, "before": 2000,
		"tied": 200, "tied, of time": 200, "tied, of call": 0, "of call, dated": 10,
		"rare flag": 10, "flag": 596, "flag, dated": 10, "of call, flag": 3,
		"calls": 1790, "calls of few": 8, "calls, dated": 1780, "calls, tied": 200, "calls, party": 1780,
		"calls, nobody": 0, "party": 1800, "party, begins": 1800,
		"party, end": 1800, "party, abroad": 1800, "party, lasting": 1800,
		"lasting": 1800, "short": 0, "party, called": 1800, "party, flag": 10, "party, tied": 200, "nobody": 0,
		"tag": 200, "tag, dated": 200, "tag, tied": 0, "tag, party": 200, "tag, flag": 0, "held": 20,
		"named": 1800, "named few": 10, "named, dated": 10, "named both": 10, "named common": 600, "named begin": 1800,
		"named never": 0, "named nobody": 0, "named, tag": 200, "named few, tag": 11, "named, tied": 200,
		"named few tied": 11, "named, flag": 4, "named few flag": 31, "named few held": 1, "named, called": 600,
		"named, party": 600, "named, of call": 3, "named, calls": 594,
	}

	for name, f := range filters("p") {
		var ids []string
		for q := (page.Query{Size: 300}); ; {
			p, err := s.ListRecordings(context.Background(), f, q)
			if err != nil {
				t.Fatal(err)
			}
			n := len(ids)
			switch {
			case n == 0:
			case f.Name != "": // pages of searches by words may be short
				wantPageBefore(t, s, f, q.From, p.Prev, ids)
			case p.Prev != ids[n-300]:
				t.Errorf("%s: the page before %s starts with %q, want %s", name, q.From, p.Prev, ids[n-300])
			}

			for _, r := range p.Items {
				ids = append(ids, r.ID)
			}
			if q.From = p.Next; p.Next == "" {
				break
			}
		}

		for i := 1; i < len(ids); i++ {
			if f.CallBegins == "" && ids[i] >= ids[i-1] || slices.Contains(ids[:i], ids[i]) {
				t.Fatalf("%s: %s comes after %s", name, ids[i], ids[i-1])
			}
		}
		if len(ids) != want[name] {
			t.Errorf("%s: %d recordings, want %d", name, len(ids), want[name])
		}
	}
}

// BenchmarkListRecordings reads the first page of fifty from a million recordings, and a page from
// the middle.
func BenchmarkListRecordings(b *testing.B) {
	c := Config{Dir: b.TempDir(), Audit: auditKey(b)}
	s := opened(b, c)
	if err := s.CreateProject(b.Context(), fabric.Project{ID: "p", MediaAuth: "public"}); err != nil {
		b.Fatal(err)
	}

	manyRecordings(b, c, s, "p", 1_000_000)
	for name, f := range filters("p") {
		for where, from := range map[string]string{"first": "", "middle": "01900000-0000-7000-8000-100000500001"} {
			b.Run(strings.ReplaceAll(name, " ", "_")+"/"+where, func(b *testing.B) {
				b.ReportAllocs()
				began := processor(b)
				for b.Loop() {
					if _, err := s.ListRecordings(b.Context(), f, page.Query{Size: 50, From: from}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(processor(b)-began)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// processor returns the CPU time that this process has used so far.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
