package store

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

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

// A recordingList is a list of the recordings of a project that manyRecordings has filled.
type recordingList struct {
	name   string
	filter recordings.Filter
	want   int  // how many of 2000 recordings the list has
	few    bool // whether PostgreSQL may sort the rows, because it expects only a few
}

// recordingLists returns lists with all filters that a list of recordings can have.
func recordingLists(project string) []recordingList {
	const few, many = true, false
	at := time.UnixMilli(0x019000000000)
	owner := recordings.Owner{ProjectID: project}
	tied := recordings.Owner{ProjectID: project, SubscriberID: "s"}

	return []recordingList{
		{"all", recordings.Filter{Owner: owner}, 1800, many},
		{"and deleted", recordings.Filter{Owner: owner, IncludeDeleted: true}, 2000, many},
		{"of a call", recordings.Filter{Owner: owner, CallSid: "c"}, 10, few},
		{"of conference", recordings.Filter{Owner: owner, ConferenceSid: "r"}, 10, many},
		{
			name:   "of a time",
			filter: recordings.Filter{Owner: owner, CreatedFrom: at, CreatedBefore: at.Add(time.Hour)},
			want:   1800,
			few:    many,
		},
		{
			name:   "before",
			filter: recordings.Filter{Owner: owner, CreatedBefore: at.Add(time.Hour), IncludeDeleted: true},
			want:   2000,
			few:    many,
		},
		{"tied", recordings.Filter{Owner: tied}, 200, many},
		{"tied, of time", recordings.Filter{Owner: tied, CreatedFrom: at}, 200, many},
		{"tied, of call", recordings.Filter{Owner: tied, CallSid: "c"}, 0, few},
		{"of call, dated", recordings.Filter{Owner: owner, CallSid: "c", CreatedFrom: at}, 10, few},
		{"a direction", recordings.Filter{Owner: owner, Direction: "outbound"}, 0, many},
		{"rare flag", recordings.Filter{Owner: owner, Flag: levels.OneWay}, 10, many},
		{"flag", recordings.Filter{Owner: owner, Flag: levels.DeadAir}, 596, many},
		{"flag, dated", recordings.Filter{Owner: owner, Flag: levels.OneWay, CreatedFrom: at}, 10, many},
		{"of call, flag", recordings.Filter{Owner: owner, CallSid: "c", Flag: levels.DeadAir}, 3, few},
		{"calls", recordings.Filter{Owner: owner, CallBegins: "c"}, 1790, few},
		{"calls of few", recordings.Filter{Owner: owner, CallBegins: "call-100"}, 8, few},
		{
			name: "calls, dated",
			filter: recordings.Filter{
				Owner:         owner,
				CallBegins:    "call-",
				CreatedFrom:   at,
				CreatedBefore: at.Add(time.Hour),
			},
			want: 1780,
			few:  few,
		},
		{"calls, tied", recordings.Filter{Owner: tied, CallBegins: "call-"}, 200, few},
		{"calls, party", recordings.Filter{Owner: owner, CallBegins: "call-", Party: "+15551234"}, 1780, few},
		{"calls, nobody", recordings.Filter{Owner: owner, CallBegins: "call-", Party: "+1999"}, 0, few},
		{"party", recordings.Filter{Owner: owner, Party: "+1 555 1234"}, 1800, few},
		{"party, end", recordings.Filter{Owner: owner, Party: "555-1234"}, 1800, few},
		{"party, begins", recordings.Filter{Owner: owner, PartyBegins: "+1555"}, 1800, few},
		{"party, abroad", recordings.Filter{Owner: owner, Party: "+49 1555 1234"}, 1800, few},
		{
			name:   "party, lasting",
			filter: recordings.Filter{Owner: owner, Party: "+15551234", DurationFrom: time.Second},
			want:   1800,
			few:    few,
		},
		{
			name:   "lasting",
			filter: recordings.Filter{Owner: owner, DurationFrom: time.Second, DurationBefore: time.Minute},
			want:   1800,
			few:    many,
		},
		{"short", recordings.Filter{Owner: owner, DurationBefore: time.Second}, 0, many},
		{"party, called", recordings.Filter{Owner: owner, Party: "/private/alice", CreatedFrom: at}, 1800, few},
		{"party, flag", recordings.Filter{Owner: owner, Party: "+15551234", Flag: levels.OneWay}, 10, few},
		{"party, tied", recordings.Filter{Owner: tied, Party: "+15551234"}, 200, few},
		{"nobody", recordings.Filter{Owner: owner, Party: "+1999"}, 0, few},
		{"tag", recordings.Filter{Owner: owner, Tag: "even"}, 200, many},
		{"tag, dated", recordings.Filter{Owner: owner, Tag: "even", CreatedFrom: at}, 200, many},
		{"tag, tied", recordings.Filter{Owner: tied, Tag: "even"}, 0, few},
		{"tag, party", recordings.Filter{Owner: owner, Tag: "even", Party: "+15551234"}, 200, few},
		{"tag, flag", recordings.Filter{Owner: owner, Tag: "even", Flag: levels.OneWay}, 0, many},
		{"held", recordings.Filter{Owner: owner, Held: true}, 20, many},
		{"named", recordings.Filter{Owner: owner, Name: "SALES"}, 1800, few},
		{"named few", recordings.Filter{Owner: owner, Name: "n100"}, 10, few},
		{"named, dated", recordings.Filter{Owner: owner, Name: "n100", CreatedFrom: at}, 10, few},
		{"named both", recordings.Filter{Owner: owner, Name: "sales n100"}, 10, few},
		{"named common", recordings.Filter{Owner: owner, Name: "ada sales"}, 600, few},
		{"named begin", recordings.Filter{Owner: owner, Name: "n"}, 1800, few},
		{"named never", recordings.Filter{Owner: owner, Name: "ada bob"}, 0, few},
		{"named nobody", recordings.Filter{Owner: owner, Name: "sale ida"}, 0, few},
		{"named, tag", recordings.Filter{Owner: owner, Name: "sales", Tag: "even"}, 200, few},
		{"named few, tag", recordings.Filter{Owner: owner, Name: "n10", Tag: "even"}, 11, few},
		{"named, tied", recordings.Filter{Owner: tied, Name: "sales"}, 200, few},
		{"named few tied", recordings.Filter{Owner: tied, Name: "n10"}, 11, few},
		{"named, flag", recordings.Filter{Owner: owner, Name: "ada", Flag: levels.OneWay}, 4, few},
		{"named few flag", recordings.Filter{Owner: owner, Name: "n10", Flag: levels.DeadAir}, 31, few},
		{"named few held", recordings.Filter{Owner: owner, Name: "n10", Held: true}, 1, few},
		{"named, called", recordings.Filter{Owner: owner, Name: "ada", Direction: "inbound"}, 600, few},
		{"named, party", recordings.Filter{Owner: owner, Name: "ada", Party: "+15551234"}, 600, few},
		{"named, of call", recordings.Filter{Owner: owner, Name: "ada", CallSid: "c"}, 3, few},
		{"named, calls", recordings.Filter{Owner: owner, Name: "ada", CallBegins: "call-"}, 594, few},
	}
}

// TestRecordingPlans shows that all lists of recordings are read in the order of an index: nothing
// is sorted, and no table is scanned.
func TestRecordingPlans(t *testing.T) { EachDatabase(t, testRecordingPlans) }

func testRecordingPlans(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	manyRecordings(t, c, s, "p", 10_000)
	filled(t, c, s, `ANALYZE`)
	for _, l := range recordingLists("p") {
		t.Run(l.name, func(t *testing.T) {
			const middle = "01900000-0000-7000-8000-100000005001"
			wantInOrder(t, c, s, l, "", forward)
			wantInOrder(t, c, s, l, middle, forward)
			wantInOrder(t, c, s, l, middle, backward)
		})
	}
}

// wantInOrder fails the test unless the page of a list from the given row is read in the order of an
// index.
func wantInOrder(t *testing.T, c Config, s *Store, l recordingList, from string, dir direction) {
	t.Helper()
	who, err := s.partyOf(t.Context(), l.filter)
	if err != nil {
		t.Fatal(err)
	}
	words, err := s.wordsFor(t.Context(), l.filter)
	if err != nil {
		t.Fatal(err)
	}

	listing := recordingListing(l.filter, from, who, words)
	q := listing.query(51, dir)
	for _, bound := range []string{`[ (]id\)? <`, `[ (]id\)? >`, `call_sid <`, `call_sid >`} {
		n := len(regexp.MustCompile(bound).FindAllString(q.sql, -1))
		if n > max(1, len(listing.ways)) {
			t.Errorf("from %q: an index can use one bound on each side, and there are %d in %s", from, n, q.sql)
		}
	}

	isServer := c.URL != ""
	plan := explain(t, s, q, isServer)
	// Each branch of a union reads only one page of rows, so it may sort them.
	plan = pageOfWay.ReplaceAllString(plan, "")
	plan = fewNamed.ReplaceAllString(plan, "")
	costly := []string{"SCAN", "TEMP B-TREE", "Seq Scan", "Sort"}
	if l.few && isServer {
		costly = []string{"Seq Scan"}
	}
	for _, step := range costly {
		if strings.Contains(plan, step) {
			t.Errorf("from %q: the plan contains %q:\n%s", from, step, plan)
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
	isServer := c.URL != ""
	search := regexp.MustCompile(`SEARCH recordings USING COVERING INDEX`)
	if isServer {
		search = regexp.MustCompile(`Index (Only )?Scan`)
	}
	scan := regexp.MustCompile(`SCAN recordings|Seq Scan on recordings`)

	for _, name := range []string{plain("from_address"), plain("to_address"), "from_tail", "to_tail"} {
		q := query{valuesBeginning(name), []any{"p", "+1", "+1" + last, 31}}
		plan := explain(t, s, q, isServer)
		if !search.MatchString(plan) {
			t.Errorf("%s: the plan does not search the column:\n%s", name, plan)
		}
		if scan.MatchString(plan) {
			t.Errorf("%s: the plan scans recordings:\n%s", name, plan)
		}
	}
}

// TestStoredPlan shows that the stored bytes of a project are added up from an index alone.
func TestStoredPlan(t *testing.T) {
	c := Config{Dir: t.TempDir(), Audit: auditKey(t)}
	s, _, _ := grantRows(t, c)
	manyRecordings(t, c, s, "p", 100)
	plan := explain(t, s, query{sumStored, []any{"p"}}, false)
	if !strings.Contains(plan, "SEARCH recordings USING COVERING INDEX recordings_stored (project_id=?)") {
		t.Errorf("the plan does not search the covering index:\n%s", plan)
	}
	stored, err := s.StoredBytes(t.Context(), "p")
	if want := int64(90 * 16044); err != nil || stored != want {
		t.Errorf("StoredBytes = %d, %v, want %d", stored, err, want)
	}
}

// TestUsagePlan shows that the usage of a project is added up. On SQLite, the query reads only an index.
func TestUsagePlan(t *testing.T) { EachDatabase(t, testUsagePlan) }

func testUsagePlan(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	manyRecordings(t, c, s, "p", 100)
	watch := &spy{DB: s.db}
	spied := newStore(&core{now: s.now, db: watch})
	epoch := time.Unix(0, 0).UTC() // the day on which manyRecordings begins
	usage, err := spied.ListUsage(t.Context(), "p", epoch, epoch.AddDate(0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	const stored = 90 * 16044
	if sum := recordings.SumUsage(usage); sum.Recordings != 100 || sum.Stored != stored {
		t.Errorf("ListUsage = %d recordings with %d stored bytes, want 100 with %d",
			sum.Recordings, sum.Stored, stored)
	}
	if c.URL != "" {
		return
	}

	plan := explain(t, s, watch.asked[0], false)
	want := "SEARCH recordings USING COVERING INDEX recordings_usage (project_id=? AND <expr>>? AND <expr><?)"
	if !strings.Contains(plan, want) {
		t.Errorf("the plan does not search the covering index:\n%s", plan)
	}
}

// pageOfWay matches the steps with which SQLite reads the page that one branch of a union returned.
var pageOfWay = regexp.MustCompile(`SCAN way\d\n?(USE TEMP B-TREE FOR ORDER BY)?`)

// fewNamed matches the steps with which SQLite reads and sorts the few recordings with a word.
var fewNamed = regexp.MustCompile(`CO-ROUTINE named\n.*\nUSE TEMP B-TREE FOR DISTINCT\nSCAN named\n` +
	`(.*\n){1,2}USE TEMP B-TREE FOR ORDER BY`)
