package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/selvage/selvage/internal/database"
)

// An installation is a Source in memory.
type installation struct {
	tables []database.Table
	rows   map[string][][]any
	media  map[string]string // by key, or for a part, by key and name, such as k1.peaks
	listed []string          // the keys of the recordings that the Source lists
	now    time.Time
}

func newInstallation() *installation {
	columns := []database.Column{{Name: "id"}, {Name: "n", Integer: true}, {Name: "note"}}
	i := &installation{
		tables: []database.Table{
			{Name: "parents", Columns: columns},
			{Name: "none", Columns: columns},
			{Name: "children", Columns: columns},
		},
		rows:   map[string][][]any{"parents": {{"a", int64(1), nil}}},
		media:  map[string]string{"k1": "sound one", "k1.peaks": "peaks", "k2": strings.Repeat("sound two", 20_000)},
		listed: []string{"k1", "k2"},
		now:    time.Now().UTC().Add(-24 * time.Hour),
	}

	note := strings.Repeat("ü<\u2028>\n\"", 100)
	for n := range 1200 { // enough that the archive contains several files of rows for this table
		row := []any{fmt.Sprint("child ", n), int64(1)<<62 - int64(n), note}
		i.rows["children"] = append(i.rows["children"], row)
	}
	return i
}

func (i *installation) source() Source {
	open := func(name string) (memory, error) {
		text, ok := i.media[name]
		if !ok {
			return memory{}, fs.ErrNotExist
		}
		return memory{bytes.NewReader([]byte(text))}, nil
	}

	return Source{
		Program: "1.2.3",
		Key:     Key{MasterKey: "0123456789abcdef"},
		Schema:  7,
		Tables:  i.tables,
		Rows: func(_ context.Context, t database.Table) iter.Seq2[[]any, error] {
			return func(yield func([]any, error) bool) {
				for _, row := range i.rows[t.Name] {
					if !yield(row, nil) {
						return
					}
				}
			}
		},
		Media: func(context.Context) iter.Seq2[Object, error] {
			return func(yield func(Object, error) bool) {
				for _, key := range i.listed {
					sum := sha256.Sum256([]byte(i.media[key]))
					o := Object{Key: key, Bytes: int64(len(i.media[key])), SHA256: hex.EncodeToString(sum[:])}
					if !yield(o, nil) {
						return
					}
				}
			}
		},
		Parts: []string{"peaks", "index"},
		Open:  func(key string) (io.ReadSeekCloser, error) { return open(key) },
		ReadPart: func(key, part string) ([]byte, error) {
			m, err := open(key + "." + part)
			if err != nil {
				return nil, err
			}
			return io.ReadAll(m)
		},
		Exists:   func(context.Context, string) (bool, error) { return false, nil },
		Now:      func() time.Time { return i.now },
		Progress: func(string) {},
	}
}

// contentsOf reads an archive with the identity id, and returns its rows and media.
func contentsOf(t *testing.T, a Archive, id age.Identity) (*installation, error) {
	t.Helper()
	got := &installation{rows: make(map[string][][]any), media: make(map[string]string)}
	var header Header

	ids := []age.Identity{id}
	keep := func(o Object) func(io.Reader) error {
		return func(r io.Reader) error {
			text, err := io.ReadAll(r)
			got.media[strings.TrimPrefix(o.name(), mediaPrefix)] = string(text)
			return err
		}
	}

	_, _, err := a.Read(ids, Visitor{
		Header: func(h Header) error { header = h; return nil },
		Rows: func(table Table, rows iter.Seq2[[]any, error]) error {
			for row, err := range rows {
				if err != nil {
					return err
				}
				got.rows[table.Name] = append(got.rows[table.Name], row)
			}
			return nil
		},
		Bytes: func(o Object, r io.Reader) error { return keep(o)(r) },
		Object: func(o Object) error {
			if o.Part == "" && !o.absent() {
				got.listed = append(got.listed, o.Key)
			}
			if header.Inside || o.absent() {
				return nil
			}
			return a.Bytes(header, o, ids, keep(o))
		},
	})
	return got, err
}

func newKey(t *testing.T) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// create writes a backup to the given file in dir. If file is "", it creates a backup in the
// directory itself, and returns the newest archive there.
func create(t *testing.T, dir string, i *installation, to age.Recipient, file string) (Archive, Report) {
	t.Helper()
	var r Report
	var err error
	target := filepath.Join(dir, file)
	if file == "" {
		r, err = OpenDir(openFolder(t, dir)).Create(t.Context(), []age.Recipient{to}, i.source())
	} else {
		r, err = CreateFile(t.Context(), target, []age.Recipient{to}, i.source())
	}
	if err != nil {
		t.Fatal(err)
	}

	a, err := Find(target)
	if err != nil {
		t.Fatal(err)
	}
	return a, r
}

// verify verifies an archive with one identity.
func verify(t *testing.T, a Archive, id age.Identity) error {
	t.Helper()
	_, _, err := a.Verify(t.Context(), []age.Identity{id}, func(string) {})
	return err
}

func openFolder(t *testing.T, dir string) Storage {
	t.Helper()
	files, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// mediaFileOf returns the name of the media file for a text.
func mediaFileOf(t *testing.T, text string, id *age.X25519Identity) string {
	t.Helper()
	recipients, err := digestOf([]age.Recipient{id.Recipient()})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(text))
	return mediaFile(hex.EncodeToString(sum[:]), recipients)
}
