package faults

import (
	"database/sql"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// A residue is what calls may leave behind in a running server.
type residue struct {
	goroutines int
	sockets    int
	files      int            // open files, except for databases
	paths      []string       // files in the data directory and in the directory for temporary files
	gauges     map[string]int // gauges of sockets, calls and recordings
	heap       int            // heap bytes in use after a garbage collection
	ended      map[string]int // ended calls by cause
}

// slack is how many more goroutines there may be at the end than before, because the server also
// does other work. Each way to end a call is tried more often than this, so a way that leaves a
// goroutine behind each time is noticed.
const slack = 4

// residueOf measures a server. temporary is the directory for the server's temporary files.
func residueOf(t *testing.T, s *harness.Server, temporary string) (r residue) {
	t.Helper()
	harness.CloseIdle()
	r.paths = append(paths(t, temporary, ""), paths(t, s.Data, "media")...)
	profile := string(fetchOps(t, s, "/debug/pprof/goroutine?debug=1"))
	if _, err := fmt.Sscanf(profile, "goroutine profile: total %d", &r.goroutines); err != nil {
		t.Fatalf("%v in %.100q", err, profile)
	}
	fetchOps(t, s, "/debug/pprof/heap?gc=1")

	r.gauges, r.ended = make(map[string]int), make(map[string]int)
	for line := range strings.Lines(string(fetchOps(t, s, "/metrics"))) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
		case name == "go_memstats_heap_alloc_bytes":
			r.heap = int(n)
		case strings.HasPrefix(name, endedMetric):
			r.ended[strings.TrimSuffix(strings.TrimPrefix(name, endedMetric), `"}`)] = int(n)
		case gauges.MatchString(name):
			r.gauges[name] = int(n)
		}
	}

	r.sockets, r.files = descriptors(t, s)
	return r
}

// endedMetric is the beginning of each metric line that counts ended calls by cause.
const endedMetric = `selvage_calls_ended_total{cause="`

// gauges matches the gauges that are 0 if there are no calls and no clients.
var gauges = regexp.MustCompile(
	`^selvage_(relay_sockets|relay_online|calls|call_legs|media_sections|call_recordings)({|$)`)

// fetchOps fetches a path from the ops listener, over a new connection.
func fetchOps(t *testing.T, s *harness.Server, path string) []byte {
	t.Helper()
	return s.Get(t, s.Ops+path, harness.Header("Connection", "close")).Want(t, 200).Body
}

// descriptors counts the open sockets and other files of a server.
func descriptors(t *testing.T, s *harness.Server) (sockets, files int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", s.PID())
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Skipf("needs /proc: %v", err)
	}

	for _, e := range entries {
		target, _ := os.Readlink(filepath.Join(dir, e.Name())) // "" if the file has been closed since
		switch {
		case strings.HasPrefix(target, "socket:"):
			sockets++
		case target != "" && !strings.Contains(target, ".db"):
			files++
		}
	}
	return sockets, files
}

// paths lists the files below dir, except those in directories with the name except.
func paths(t *testing.T, dir, except string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == except:
			return fs.SkipDir
		case !d.IsDir():
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (r residue) String() string {
	return fmt.Sprintf("%d goroutines, %d sockets, %d other files, %d KiB of heap",
		r.goroutines, r.sockets, r.files, r.heap>>10)
}

// since compares r with an earlier measurement. It returns an error that names something that was
// left behind, or nil if nothing was.
func (r residue) since(before residue) error {
	for name, n := range r.gauges {
		if n != before.gauges[name] {
			return fmt.Errorf("%s is %d, and was %d", name, n, before.gauges[name])
		}
	}
	if !slices.Equal(r.paths, before.paths) {
		return fmt.Errorf("the files are %q, and were %q", r.paths, before.paths)
	}
	if r.sockets > before.sockets || r.files > before.files || r.goroutines > before.goroutines+slack {
		return fmt.Errorf("the server uses %v, and used %v before", r, before)
	}
	return nil
}

// openRows opens a database file of a running server for reading.
func openRows(t *testing.T, s *harness.Server, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(s.Data, name)+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// count returns the number that a query returns.
func count(t *testing.T, db *sql.DB, query string, args ...any) (n int) {
	t.Helper()
	if err := db.QueryRow(query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// countRows counts the rows of each table of a database.
func countRows(t *testing.T, db *sql.DB) map[string]int {
	t.Helper()
	names, err := db.Query("SELECT name FROM sqlite_master WHERE type = 'table'")
	if err != nil {
		t.Fatal(err)
	}

	counts := make(map[string]int)
	for names.Next() {
		var name string
		if err := names.Scan(&name); err != nil {
			t.Fatal(err)
		}
		counts[name] = 0
	}

	if err := names.Err(); err != nil {
		t.Fatal(err)
	}
	for name := range counts {
		counts[name] = count(t, db, "SELECT count(*) FROM "+name)
	}
	return counts
}

// grown returns the names of the tables that have more rows than before.
func grown(before, after map[string]int) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if after[name] > before[name] {
			names = append(names, name)
		}
	}
	return names
}

// countCauses counts the records of calls by the cause of their end.
func countCauses(t *testing.T, db *sql.DB) map[string]int {
	t.Helper()
	found, err := db.Query("SELECT cause, count(*) FROM calls GROUP BY cause")
	if err != nil {
		t.Fatal(err)
	}

	counts := make(map[string]int)
	for found.Next() {
		var cause string
		var n int
		if err := found.Scan(&cause, &n); err != nil {
			t.Fatal(err)
		}
		counts[cause] = n
	}

	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return counts
}
