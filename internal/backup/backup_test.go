package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"reflect"
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
	media  map[string]string // by key; parts by key and name
	listed []string          // the keys of recordings
	now    time.Time
}

func newInstallation() *installation {
	columns := []database.Column{{Name: "id"}, {Name: "n", Integer: true}, {Name: "note"}}
	i := &installation{
		tables: []database.Table{{Name: "parents", Columns: columns}, {Name: "none", Columns: columns},
			{Name: "children", Columns: columns}},
		rows:   map[string][][]any{"parents": {{"a", int64(1), nil}}},
		media:  map[string]string{"k1": "sound one", "k1.peaks": "peaks", "k2": strings.Repeat("sound two", 20_000)},
		listed: []string{"k1", "k2"},
		now:    time.Now().UTC().Add(-24 * time.Hour),
	}
	for n := range 1200 { // enough for several parts in the archive
		i.rows["children"] = append(i.rows["children"],
			[]any{fmt.Sprint("child ", n), int64(1)<<62 - int64(n), strings.Repeat("ü<\u2028>\n\"", 100)})
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
		Program: "1.2.3", Key: Key{MasterKey: "0123456789abcdef"}, Schema: 7, Tables: i.tables,
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

// contentsOf returns the contents of an archive.
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

// create writes a backup into a directory, or to a file in it.
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

func openFolder(t *testing.T, dir string) Storage {
	t.Helper()
	files, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestRoundTrip(t *testing.T) {
	for _, file := range []string{"", "one.age"} {
		id, want := newKey(t), newInstallation()
		a, r := create(t, t.TempDir(), want, id.Recipient(), file)
		if r.Rows != 1201 || r.Recordings != 2 || r.Added != 3 || r.Manifest.Media.Files != 3 {
			t.Errorf("%q: report %+v", file, r)
		}

		got, err := contentsOf(t, a, id)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.rows, want.rows) {
			t.Errorf("%q: the rows differ", file)
		}
		if !reflect.DeepEqual(got.media, want.media) || !reflect.DeepEqual(got.listed, want.listed) {
			t.Errorf("%q: the media differs", file)
		}
		if _, _, err := a.Verify(t.Context(), []age.Identity{id}, func(string) {}); err != nil {
			t.Errorf("%q: Verify: %v", file, err)
		}
		if _, err := contentsOf(t, a, newKey(t)); err == nil {
			t.Errorf("%q: another identity opens the backup", file)
		}
	}
}

// TestStockTools shows that age, tar and gunzip can read an archive.
func TestStockTools(t *testing.T) {
	id, dir := newKey(t), t.TempDir()
	create(t, dir, newInstallation(), id.Recipient(), "one.age")
	file, err := os.Open(filepath.Join(dir, "one.age"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decrypted, err := age.Decrypt(file, id)
	if err != nil {
		t.Fatal(err)
	}

	entries := make(map[string]string)
	for archive := tar.NewReader(decrypted); ; {
		head, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var content io.Reader = archive
		if strings.HasSuffix(head.Name, ".gz") {
			if content, err = gzip.NewReader(archive); err != nil {
				t.Fatal(err)
			}
		}
		text, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		entries[head.Name] = string(text)
	}
	if got := entries["rows/parents/000000.jsonl.gz"]; got != "[\"a\",1,null]\n" {
		t.Errorf("rows of parents: %q", got)
	}
	if entries["rows/children/000001.jsonl.gz"] == "" || entries["media/k1.peaks"] != "peaks" {
		t.Error("rows or media are missing")
	}
	var m Manifest
	if err := json.Unmarshal([]byte(entries["manifest.json"]), &m); err != nil || m.Rows() != 1201 {
		t.Errorf("manifest: %v, %d rows", err, m.Rows())
	}
}

// TestIncremental shows that a later backup writes only new media, and that Prune removes media
// that no remaining backup uses.
func TestIncremental(t *testing.T) {
	id, dir, i := newKey(t), t.TempDir(), newInstallation()
	create(t, dir, i, id.Recipient(), "")
	i.now = i.now.Add(time.Hour)
	delete(i.media, "k1")
	delete(i.media, "k1.peaks")
	i.media["k3"] = "sound three"
	i.listed = []string{"k2", "k3"}
	newest, r := create(t, dir, i, id.Recipient(), "")
	if r.Added != 1 || r.AddedBytes != int64(len("sound three")) {
		t.Errorf("the second backup adds %d files, %d bytes", r.Added, r.AddedBytes)
	}

	// The bytes of the first recording were last used two days ago.
	old := i.now.Add(-48 * time.Hour)
	for _, text := range []string{"sound one", "peaks"} {
		if err := os.Chtimes(filepath.Join(dir, mediaFileOf(t, text, id)), old, old); err != nil {
			t.Fatal(err)
		}
	}
	removed, err := OpenDir(openFolder(t, dir)).Prune(1, newest.Name)
	if err != nil || len(removed) != 1 {
		t.Fatalf("Prune = %q, %v", removed, err)
	}
	all, err := OpenDir(openFolder(t, dir)).List()
	if err != nil || len(all) != 1 || all[0].Name != newest.Name || all[0].Rows != 1201 {
		t.Errorf("List = %+v, %v", all, err)
	}
	if _, _, err := newest.Verify(t.Context(), []age.Identity{id}, func(string) {}); err != nil {
		t.Errorf("after Prune: %v", err)
	}
	left := 0
	if err := openFolder(t, dir).Files("media", func(File) error { left++; return nil }); err != nil || left != 2 {
		t.Errorf("%d files of media are left (%v), want 2", left, err)
	}
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

// TestFuture shows that a backup dated in the future is not treated as the newest one, and that
// Prune keeps the backup that was just made even if a later date exists. The date of a backup comes
// from its name.
func TestFuture(t *testing.T) {
	id, dir, i := newKey(t), t.TempDir(), newInstallation()
	today := i.now
	i.now = time.Now().AddDate(10, 0, 0) // the clock was wrong at this time
	future, _ := create(t, dir, i, id.Recipient(), "future.age")
	inDir := archivePrefix + i.now.UTC().Format(timeFormat) + archiveSuffix
	if err := os.Rename(filepath.Join(dir, future.Name), filepath.Join(dir, inDir)); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(dir); err == nil || !strings.Contains(err.Error(), "dated in the future") {
		t.Errorf("Find with only a backup dated in the future = %v", err)
	}

	i.now = today
	a, _ := create(t, dir, i, id.Recipient(), "")
	if a.Name == inDir {
		t.Error("Find returns the backup dated in the future")
	}
	if removed, err := OpenDir(openFolder(t, dir)).Prune(1, a.Name); err != nil || len(removed) > 0 {
		t.Errorf("Prune = %q, %v, want nothing removed", removed, err)
	}

	i.now = today.Add(-time.Minute) // the clock was set back
	_, r := create(t, dir, i, id.Recipient(), "")
	removed, err := OpenDir(openFolder(t, dir)).Prune(1, r.Name)
	if err != nil || len(removed) != 1 || removed[0] != a.Name {
		t.Errorf("Prune = %q, %v, want the other backup removed", removed, err)
	}

	text := strings.Replace(`{"name":"x","created_at":"2099-01-01T00:00:00Z","rows":7}`, "x", r.Name, 1)
	if err := os.WriteFile(filepath.Join(dir, r.Name+summarySuffix), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := OpenDir(openFolder(t, dir)).List()
	newest, found, dated := Newest(all)
	if err != nil || !found || newest.Name != r.Name || newest.Rows != 7 || len(dated) != 1 {
		t.Errorf("Newest = %+v, %t, %+v; %v", newest, found, dated, err)
	}
}

// TestDamagedSummary shows that a damaged summary does not hide its backup, or any other.
func TestDamagedSummary(t *testing.T) {
	id, dir, i := newKey(t), t.TempDir(), newInstallation()
	create(t, dir, i, id.Recipient(), "")
	i.now = i.now.Add(time.Hour)
	newest, _ := create(t, dir, i, id.Recipient(), "")
	for _, text := range []string{"", "{", `{"rows":"x"}`, "\x00\x00"} {
		if err := os.WriteFile(filepath.Join(dir, newest.Name+summarySuffix), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := OpenDir(openFolder(t, dir)).List()
		if err != nil || len(all) != 2 || all[0].Name != newest.Name || all[1].Rows != 1201 {
			t.Errorf("with the summary %q: List = %+v, %v", text, all, err)
		}
	}
}

// TestOtherRecipients shows that each backup in a directory can be read with the identity that it was
// made for, when the recipients change.
func TestOtherRecipients(t *testing.T) {
	old, fresh := newKey(t), newKey(t)
	dir, i := t.TempDir(), newInstallation()
	first, _ := create(t, dir, i, old.Recipient(), "")
	i.now = i.now.Add(time.Hour)
	second, r := create(t, dir, i, fresh.Recipient(), "")
	if r.Added != 3 {
		t.Errorf("the backup for other recipients writes %d media files, want 3", r.Added)
	}
	for name, test := range map[string]struct {
		a     Archive
		id    age.Identity
		reads bool
	}{"first, old": {first, old, true}, "first, new": {first, fresh, false},
		"second, new": {second, fresh, true}, "second, old": {second, old, false}} {
		_, _, err := test.a.Verify(t.Context(), []age.Identity{test.id}, func(string) {})
		if (err == nil) != test.reads {
			t.Errorf("%s: Verify = %v", name, err)
		}
	}

	one, err := digestOf([]age.Recipient{old.Recipient(), fresh.Recipient()})
	other, otherErr := digestOf([]age.Recipient{fresh.Recipient(), old.Recipient(), old.Recipient()})
	if one != other || err != nil || otherErr != nil {
		t.Errorf("the order of recipients matters: %s, %s; %v, %v", one, other, err, otherErr)
	}
}

// TestMediaThatDiffers shows how a backup treats media that is missing, or that differs from its
// row.
func TestMediaThatDiffers(t *testing.T) {
	id, i := newKey(t), newInstallation()
	i.listed = append(i.listed, "deleted", "missing")
	s := i.source()
	s.Exists = func(_ context.Context, key string) (bool, error) { return key == "missing", nil }
	media := s.Media
	s.Media = func(ctx context.Context) iter.Seq2[Object, error] {
		return func(yield func(Object, error) bool) {
			for o, err := range media(ctx) {
				if o.Key == "k1" {
					o.SHA256 = strings.Repeat("0", 64)
				}
				if !yield(o, err) {
					return
				}
			}
		}
	}

	dir := t.TempDir()
	r, err := OpenDir(openFolder(t, dir)).Create(t.Context(), []age.Recipient{id.Recipient()}, s)
	var mismatch *Mismatch
	if !errors.As(err, &mismatch) || len(mismatch.Found) != 2 {
		t.Errorf("Create = %v, want two differences", err)
	}
	if r.Manifest.Media.Deleted != 1 || r.Manifest.Media.Missing != 1 || r.Recordings != 2 {
		t.Errorf("media = %+v", r.Manifest.Media)
	}
	a, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Verify(t.Context(), []age.Identity{id}, func(string) {}); err != nil {
		t.Errorf("Verify = %v", err)
	}
}

// TestDamage shows that changes to each kind of entry, and a truncated archive, are found. The
// damaged archive is encrypted again, so that decryption alone does not reveal the damage.
func TestDamage(t *testing.T) {
	id, dir := newKey(t), t.TempDir()
	create(t, dir, newInstallation(), id.Recipient(), "one.age")
	plain := decrypted(t, filepath.Join(dir, "one.age"), id)

	for name, damage := range map[string]func(name string, content []byte) (string, []byte){
		"header":         replaced("header.json", `"schema": 7`, `"schema": "x"`),
		"version":        replaced("header.json", `"version": 1`, `"version": 2`),
		"column":         replaced("header.json", `"name": "id"`, `"name": "id", "integer": true`),
		"row":            rezipped("rows/parents/000000.jsonl.gz", "[\"a\",2,null]\n"),
		"row too many":   rezipped("rows/parents/000000.jsonl.gz", "[\"a\",1,null]\n[\"b\",1,null]\n"),
		"values":         rezipped("rows/parents/000000.jsonl.gz", "[\"a\",1]\n"),
		"type":           rezipped("rows/parents/000000.jsonl.gz", "[1,1,null]\n"),
		"nested":         rezipped("rows/parents/000000.jsonl.gz", "[[\"a\"],1,null]\n"),
		"object":         rezipped("rows/parents/000000.jsonl.gz", "{\"id\":\"a\"}\n"),
		"too long":       rezipped("rows/parents/000000.jsonl.gz", strings.Repeat(" ", maxLine)+"[\"a\",1,null]\n"),
		"not JSON":       rezipped("rows/parents/000000.jsonl.gz", "[\"a\",1,null\n"),
		"part missing":   removed("rows/children/000001.jsonl.gz"),
		"table missing":  removed("rows/parents/000000.jsonl.gz"),
		"checksum":       replaced("manifest.json", `"rows": 1200`, `"rows": 1201`),
		"no manifest":    removed("manifest.json"),
		"no code":        removed("manifest.hmac"),
		"media":          replaced("media/k1", "sound one", "sound 0ne"),
		"media missing":  removed("media/k1"),
		"media unlisted": renamed("media/k1.peaks", "media/k1.other"),
		"objects":        removed("objects/000000.jsonl.gz"),
		"unknown entry":  renamed("media/k1", "other/k1"),
	} {
		file := filepath.Join(dir, "damaged.age")
		rewrite(t, plain, file, id.Recipient(), damage)
		a, err := Find(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := a.Verify(t.Context(), []age.Identity{id}, func(string) {}); err == nil {
			t.Errorf("%s: damage is not found", name)
		}
	}

	whole, err := os.ReadFile(filepath.Join(dir, "one.age"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"last byte cut off": whole[:len(whole)-1], "half": whole[:len(whole)/2], "empty": nil,
		"first byte": append([]byte{'A'}, whole[1:]...), "middle": flipped(whole, len(whole)/2),
		"last byte": flipped(whole, len(whole)-1),
	} {
		file := filepath.Join(dir, "damaged.age")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := Find(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := a.Verify(t.Context(), []age.Identity{id}, func(string) {}); err == nil {
			t.Errorf("%s: damage is not found", name)
		}
	}
}

// TestDamagedMedia shows that damage to media files outside the archive is found.
func TestDamagedMedia(t *testing.T) {
	id, dir := newKey(t), t.TempDir()
	a, _ := create(t, dir, newInstallation(), id.Recipient(), "")
	file := filepath.Join(dir, mediaFileOf(t, "sound one", id))
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	var other bytes.Buffer
	w, err := age.Encrypt(&other, id.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(w, "sound 1")
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"cut off": whole[:len(whole)-1], "changed": flipped(whole, len(whole)-1), "other bytes": other.Bytes(),
		"missing": nil,
	} {
		err := os.WriteFile(file, content, 0o600)
		if content == nil {
			err = os.Remove(file)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := a.Verify(t.Context(), []age.Identity{id}, func(string) {}); err == nil {
			t.Errorf("%s: damage is not found", name)
		}
	}
}

// TestRowOfManyValues shows that a line of many values is refused without reading all of them
// into memory.
func TestRowOfManyValues(t *testing.T) {
	text := []byte("[" + strings.Repeat("1,", 10_000) + "1]\n")
	table := TableOf(newInstallation().tables[0])
	for i := range table.Columns {
		table.Columns[i].Integer = true
	}
	allocations := testing.AllocsPerRun(1, func() {
		if _, err := parseRow(table, text); err == nil {
			t.Error("a row of too many values is accepted")
		}
	})
	if allocations > 1000 {
		t.Errorf("parseRow allocates %.0f times for a row of 3 columns", allocations)
	}
}

// TestCheck shows that a backup with a changed header or manifest, or one that was made with
// another key, is intact but not authentic.
func TestCheck(t *testing.T) {
	id, dir := newKey(t), t.TempDir()
	create(t, dir, newInstallation(), id.Recipient(), "one.age")
	plain := decrypted(t, filepath.Join(dir, "one.age"), id)
	var other Key
	other.Secret[31] = 1
	for name, test := range map[string]struct {
		damage damage
		key    Key
		want   error
	}{
		"unchanged": {damage: replaced("", "", "")},
		"other key": {damage: replaced("", "", ""), key: other, want: ErrForged},
		"header":    {damage: replaced("header.json", `"schema": 7`, `"schema": 8`), want: ErrForged},
		"manifest":  {damage: replaced("manifest.json", `"tables"`, `"other": 1, "tables"`), want: ErrForged},
		"code":      {damage: renewed("manifest.hmac", strings.Repeat("0", 64)+"\n"), want: ErrForged},
		"shorter":   {damage: renewed("manifest.hmac", "00\n"), want: ErrForged},
		"empty":     {damage: renewed("manifest.hmac", ""), want: ErrForged},
	} {
		file := filepath.Join(dir, "changed.age")
		rewrite(t, plain, file, id.Recipient(), test.damage)
		a, err := Find(file)
		if err != nil {
			t.Fatal(err)
		}
		_, m, err := a.Verify(t.Context(), []age.Identity{id}, func(string) {})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}

		if err := m.Check(test.key); !errors.Is(err, test.want) {
			t.Errorf("%s: Check = %v, want %v", name, err, test.want)
		}
	}
}

func flipped(content []byte, at int) []byte {
	changed := bytes.Clone(content)
	changed[at] ^= 1
	return changed
}

func decrypted(t *testing.T, file string, id age.Identity) []byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := age.Decrypt(f, id)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// rewrite writes an archive whose entries were changed by damage. Entries whose name is then empty
// are omitted.
func rewrite(t *testing.T, plain []byte, file string, to age.Recipient,
	damage func(string, []byte) (string, []byte)) {
	t.Helper()
	var out bytes.Buffer
	encrypted, err := age.Encrypt(&out, to)
	if err != nil {
		t.Fatal(err)
	}

	w := tar.NewWriter(encrypted)
	for archive := tar.NewReader(bytes.NewReader(plain)); ; {
		head, err := archive.Next()
		if err == io.EOF {
			break
		}
		content, readErr := io.ReadAll(archive)
		if err = errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		name, content := damage(head.Name, content)
		if name == "" {
			continue
		}
		head.Name, head.Size = name, int64(len(content))
		err = w.WriteHeader(head)
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	if err := errors.Join(w.Close(), encrypted.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

type damage = func(string, []byte) (string, []byte)

func renewed(entry, text string) damage {
	return func(name string, content []byte) (string, []byte) {
		if name == entry {
			content = []byte(text)
		}
		return name, content
	}
}

func replaced(entry, old, text string) damage {
	return func(name string, content []byte) (string, []byte) {
		if name == entry {
			content = bytes.Replace(content, []byte(old), []byte(text), 1)
		}
		return name, content
	}
}

func removed(entry string) damage { return renamed(entry, "") }

func renamed(entry, to string) damage {
	return func(name string, content []byte) (string, []byte) {
		if name == entry {
			return to, content
		}
		return name, content
	}
}

func rezipped(entry, text string) damage {
	return func(name string, content []byte) (string, []byte) {
		if name != entry {
			return name, content
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
		return name, b.Bytes()
	}
}
