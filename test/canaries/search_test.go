package canaries

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver for PostgreSQL
	"github.com/redis/go-redis/v9"

	"github.com/selvage/selvage/test/harness"
)

// exports returns the data of the project that authorized callers can get.
func (n *nest) exports(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{
		"export of a subscriber": []byte(n.Command(t, "", "subscriber", "export", n.subscriber.ID)),
		"export of the audit trail": []byte(n.Command(t, "", "audit", "export", "--project", n.ID,
			"--format", "csv")),
		"the project":          []byte(n.Command(t, "", "project", "show", n.ID, "-o", "json")),
		"the clients":          []byte(n.Command(t, "", "client", "list", "--project", n.ID, "-o", "json")),
		"the keys":             []byte(n.Command(t, "", "key", "list", "--project", n.ID, "-o", "json")),
		"the configuration":    []byte(n.Command(t, "", "config", "show")),
		"the output of doctor": []byte(output(n.TryCommand("doctor"))),
	}
	for name, path := range map[string]string{
		"export of a subscriber by REST": "/api/fabric/resources/subscribers/" +
			n.subscriber.ID + "/export",
		"list of resources":  "/api/fabric/resources",
		"list of people":     "/api/fabric/resources/subscribers",
		"list of recordings": n.LaML("/Recordings.json"),
		"list of keys":       "/api/project/tokens",
		"list of clients":    "/api/fabric/clients",
		"audit":              "/api/fabric/audit",
	} {
		all[name] = n.Get(t, path, n.basic()).Body
	}
	return all
}

// output returns the output of a command that may fail.
func output(text string, _ error) string { return text }

// served returns everything that the ops listener serves: metrics, health and profiles.
func served(t *testing.T, s *harness.Server) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, path := range []string{
		"/metrics", "/healthz", "/readyz", "/debug/vars", "/debug/pprof/", "/debug/pprof/cmdline",
		"/debug/pprof/goroutine?debug=2", "/debug/pprof/goroutine", "/debug/pprof/heap?debug=1", "/debug/pprof/heap",
		"/debug/pprof/allocs?debug=1", "/debug/pprof/block?debug=1", "/debug/pprof/mutex?debug=1",
		"/debug/pprof/profile?seconds=1", "/debug/pprof/trace?seconds=1",
	} {
		body := s.Get(t, s.Ops+path).Body
		if r, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
			if body, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
		all["GET "+path+" of the ops listener"] = body
	}
	return all
}

// stored returns the bytes of every file in the data directory, and all rows and sessions that are
// stored elsewhere.
func stored(t *testing.T, s *harness.Server) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := filepath.WalkDir(s.Data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(s.Data, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		place := "the file " + name
		if strings.HasPrefix(name, "selvage.db") {
			place = "rows in " + name
		}
		all[place] = append([]byte(name+"\n"), content...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	if database := s.Database(); database != "" {
		all["rows of PostgreSQL"] = rowsOf(t, database)
	}
	for _, entry := range s.Backends {
		if address, ok := strings.CutPrefix(entry, "SELVAGE_SESSIONS=redis"); ok {
			all["sessions of Redis"] = valuesOf(t, "redis"+address)
		}
	}
	return all
}

// rowsOf returns all rows of all tables of a PostgreSQL database as text.
func rowsOf(t *testing.T, database string) []byte {
	t.Helper()
	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	var b bytes.Buffer
	for _, table := range texts(t, db, `SELECT quote_ident(schemaname) || '.' || quote_ident(tablename)
		FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`) {
		for _, row := range texts(t, db, fmt.Sprintf("SELECT encode(t::text::bytea, 'escape') FROM %s t", table)) {
			b.WriteString(row + "\n")
		}
	}
	return b.Bytes()
}

// texts returns the values of a query's only column.
func texts(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()

	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}

	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// valuesOf returns all keys of a Redis server with their values.
func valuesOf(t *testing.T, address string) []byte {
	t.Helper()
	options, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()

	var b bytes.Buffer
	each := client.Scan(t.Context(), 0, "*", 1000).Iterator()
	for each.Next(t.Context()) {
		fmt.Fprintln(&b, each.Val(), valueOf(t, client, each.Val()))
	}
	if err := each.Err(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// valueOf returns the value of a key of any type. If the key has expired, the value is empty.
func valueOf(t *testing.T, client *redis.Client, key string) any {
	t.Helper()
	ctx := t.Context()
	var value any
	var err error
	switch client.Type(ctx, key).Val() {
	case "string":
		value, err = client.Get(ctx, key).Result()
	case "hash":
		value, err = client.HGetAll(ctx, key).Result()
	case "set":
		value, err = client.SMembers(ctx, key).Result()
	case "zset":
		value, err = client.ZRange(ctx, key, 0, -1).Result()
	case "list":
		value, err = client.LRange(ctx, key, 0, -1).Result()
	}
	if err != nil && err != redis.Nil {
		t.Fatal(err)
	}
	return value
}
