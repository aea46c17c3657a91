package dashboard_test

import (
	"compress/gzip"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // another connection to the same file

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

// These are the limits for a page of the dashboard.
const (
	maxCPU   = 20 * time.Millisecond
	maxBytes = 120_000
)

// BenchmarkPages requests pages of the dashboard in a project with a million calls, a million
// subscribers and a million recordings: the first and the second page of a list, and searches.
// cpu-us is the CPU time that this process, which includes the client, uses per page. bytes is the
// compressed size of the page, its style sheet and its script. Inserting the rows takes minutes;
// SELVAGE_BENCH_ROWS sets a smaller number.
func BenchmarkPages(b *testing.B) {
	w := newWorld(b)
	_, who := w.operator("ann@example.com", ofAll)

	person := func(mail, first, last string) fabric.Subscriber {
		in := fabric.SubscriberInput{Email: &mail, Profile: fabric.Profile{FirstName: &first, LastName: &last}}
		sub, err := w.fabric.Subscribers.Create(b.Context(), w.one.ID, in)
		must(b, err)
		return sub
	}

	person("countess@example.com", "Augusta", "King")
	sub := person("ada@example.com", "Ada", "Lovelace")
	rec := w.record(w.one.ID, "a-call")
	call := w.addCall(over(calls.NormalClearing, true))
	w.multiply(b, 1_000_000, "calls", call.Key, "call_id", "to_address")
	w.multiply(b, 1_000_000, "subscribers", sub.ID, "email", "reference", "last_name")
	w.multiply(b, 1_000_000, "recordings", rec.ID, "sid", "identity", "media_key", "created")

	base := "/dashboard/projects/" + w.one.ID
	files := 0
	for _, path := range staticOf(who.get(base).body) {
		files += weigh(b, w.url+path, who.client)
	}

	// secondPage returns the path of the second page of a list, or "" if there is none.
	secondPage := func(list string) string {
		page := who.get(base + "/" + list).body
		next := between(page, `rel="prev"`, "</nav>")
		list, _, _ = strings.Cut(list, "?")
		_, afterLink, ok := strings.Cut(page, `<a href="`+base+"/"+list+"?")
		if ok {
			query, _, _ := strings.Cut(afterLink, `"`)
			next = base + "/" + list + "?" + query
		}
		return strings.ReplaceAll(next, "&amp;", "&")
	}

	for name, path := range map[string]string{
		"home": base, "subscribers": base + "/subscribers", "subscribers, next": secondPage("subscribers"),
		"subscriber":                               base + "/subscribers/" + sub.ID,
		"subscribers by a word that all contain":   base + "/subscribers?email=ada",
		"subscribers by two words":                 base + "/subscribers?email=lovelace-777+ada",
		"subscribers by a last name":               base + "/subscribers?email=king",
		"subscribers by an unknown word":           base + "/subscribers?email=nobody",
		"subscribers by words never used together": base + "/subscribers?email=lovelace+king",
		"subscribers by such a word, next":         secondPage("subscribers?email=ada"),
		"recordings of an unknown party":           base + "/recordings?party=%2B1999",
		"recordings":                               base + "/recordings",
		"recordings, next":                         secondPage("recordings"),
		"recordings of a call":                     base + "/recordings?call=a-call",
		"recordings of a day":                      base + "/recordings?after=2026-01-01&before=2026-01-01",
		"recording":                                base + "/recordings/" + rec.Sid,
		"resources":                                base + "/resources",
		"resources by an unknown word":             base + "/resources?q=nobody",
		"resources by two words":                   base + "/resources?q=ada+lovelace",
		"calls":                                    base + "/calls",
		"calls of somebody":                        base + "/calls?subscriber=ada@example.com",
		"calls by a part of a number":              base + "/calls?q=777",
		"calls by unknown words":                   base + "/calls?q=nobody+at+all",
		"calls by an unknown number":               base + "/calls?q=%2B1+415+555+0134",
		"token":                                    base + "/tokens/make/subscriber",
		"keys":                                     base + "/keys",
		"audit":                                    base + "/audit",
		"clients":                                  base + "/clients",
		"branding":                                 base + "/branding",
		"settings":                                 "/dashboard/settings",
	} {
		b.Run(name, func(b *testing.B) {
			if path == "" {
				b.Skip("there is only one page")
			}

			if a := who.get(path); a.StatusCode != http.StatusOK {
				b.Fatalf("%s: %s, want 200", path, a.Status)
			}

			before := processorTime(b)
			for b.Loop() {
				who.get(path)
			}
			cpu := (processorTime(b) - before) / time.Duration(b.N)

			size := weigh(b, w.url+path, who.client) + files
			b.ReportMetric(float64(cpu.Microseconds()), "cpu-us/op")
			b.ReportMetric(float64(size), "bytes")
			if cpu > maxCPU {
				b.Errorf("%s takes %s of processor time, want at most %s", name, cpu, maxCPU)
			}
			if size > maxBytes {
				b.Errorf("%s takes %d bytes, want at most %d", name, size, maxBytes)
			}
		})
	}
}

// processorTime returns the CPU time that this process has used.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// staticOf returns the static files that a page uses.
func staticOf(page string) (paths []string) {
	for _, part := range strings.Split(page, `"/static/`)[1:] {
		name, _, _ := strings.Cut(part, `"`)
		paths = append(paths, "/static/"+name)
	}
	return paths
}

// weigh returns the size of a response as a browser receives it, with about 600 bytes of headers.
func weigh(b *testing.B, url string, c *http.Client) int {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	must(b, err)
	r.Header.Set("Accept-Encoding", "gzip")
	resp, err := c.Do(r)
	must(b, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(b, err)
	if resp.Header.Get("Content-Encoding") == "gzip" {
		_, err := gzip.NewReader(strings.NewReader(string(body)))
		must(b, err)
	}
	return len(body) + 600
}

// multiply inserts n copies of the row with the given id. Each copy has its own id and different
// values in the columns in differ.
func (w *world) multiply(b *testing.B, n int, table, id string, differ ...string) {
	b.Helper()
	if fewer, err := strconv.Atoi(os.Getenv("SELVAGE_BENCH_ROWS")); err == nil {
		n = fewer
	}

	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.dir, "selvage.db")+"?_pragma=busy_timeout(60000)")
	must(b, err)
	defer db.Close()
	rows, err := db.Query(`SELECT name, type FROM pragma_table_info($1)`, table)
	must(b, err)

	// Select each column, either unchanged or combined with the number of the copy.
	var names, values []string
	for rows.Next() {
		var name, kind string
		must(b, rows.Scan(&name, &kind))
		value := `t."` + name + `"`
		switch {
		case name == "id":
			value = `'01900000-0000-7000-8000-' || (100000000000 + i)`
		case !slices.Contains(differ, name):
		case strings.EqualFold(kind, "TEXT"):
			value += ` || '-' || i`
		default:
			value += ` - i * 1000000`
		}
		names, values = append(names, `"`+name+`"`), append(values, value)
	}
	must(b, rows.Err())
	must(b, rows.Close())

	// Insert in batches, so that no transaction becomes too large.
	insert := fmt.Sprintf(`WITH RECURSIVE n (i) AS (
			SELECT CAST($1 AS INTEGER) UNION ALL SELECT i + 1 FROM n WHERE i < $2 - 1)
		INSERT INTO %s (%s) SELECT %s FROM %s AS t, n WHERE t.id = $3`,
		table, strings.Join(names, ", "), strings.Join(values, ", "), table)
	const batch = 10_000
	for first := 0; first < n; first += batch {
		_, err := db.Exec(insert, first, min(first+batch, n), id)
		must(b, err)
	}

	_, err = db.Exec("ANALYZE")
	must(b, err)
}
