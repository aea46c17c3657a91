package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
)

// TestDamagedSummary shows that a damaged summary hides neither its own backup nor another.
func TestDamagedSummary(t *testing.T) {
	id, dir, i := newKey(t), t.TempDir(), newInstallation()
	create(t, dir, i, id.Recipient(), "")
	i.now = i.now.Add(time.Hour)
	newest, _ := create(t, dir, i, id.Recipient(), "")
	summary := filepath.Join(dir, newest.Name+summarySuffix)
	for _, text := range []string{"", "{", `{"rows":"x"}`, "\x00\x00"} {
		if err := os.WriteFile(summary, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}

		backups, err := OpenDir(openFolder(t, dir)).List()
		if err != nil {
			t.Fatalf("with the summary %q: List: %v", text, err)
		}
		if len(backups) != 2 {
			t.Fatalf("with the summary %q: List returns %d backups, want 2", text, len(backups))
		}
		if backups[0].Name != newest.Name {
			t.Errorf("with the summary %q: the first backup is %s, want the newest, %s",
				text, backups[0].Name, newest.Name)
		}
		if backups[1].Rows != 1201 {
			t.Errorf("with the summary %q: the older backup has %d rows, want 1201", text, backups[1].Rows)
		}
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
	if !errors.As(err, &mismatch) {
		t.Fatalf("Create = %v, want a Mismatch", err)
	}
	if len(mismatch.Found) != 2 {
		t.Errorf("Create finds %d differences, want 2: %v", len(mismatch.Found), err)
	}

	if n := r.Manifest.Media.Deleted; n != 1 {
		t.Errorf("%d recordings were deleted, want 1", n)
	}
	if n := r.Manifest.Media.Missing; n != 1 {
		t.Errorf("the bytes of %d recordings are missing, want 1", n)
	}
	if r.Recordings != 2 {
		t.Errorf("the backup has %d recordings, want 2", r.Recordings)
	}

	a, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}

	if err := verify(t, a, id); err != nil {
		t.Errorf("Verify = %v, want nil", err)
	}
}

// A decayingFolder is a folder that changes a bit of each archive after the archive was written.
type decayingFolder struct {
	Storage
	dir string
}

func (d decayingFolder) Write(name string, write func(io.Writer) error) error {
	if err := d.Storage.Write(name, write); err != nil || !strings.HasPrefix(name, archivePrefix) {
		return err
	}
	file := filepath.Join(d.dir, name)
	whole, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, flipped(whole, len(whole)/2), 0o600)
}

// TestDamagedWhenNew shows that Create fails if a new archive reads back differently. The error is
// not a Mismatch, which would mean that only some media is missing. The archive is removed, so it
// does not count as the newest backup.
func TestDamagedWhenNew(t *testing.T) {
	id, dir := newKey(t), t.TempDir()
	d := OpenDir(decayingFolder{openFolder(t, dir), dir})
	r, err := d.Create(t.Context(), []age.Recipient{id.Recipient()}, newInstallation().source())
	var mismatch *Mismatch
	if err == nil || errors.As(err, &mismatch) {
		t.Errorf("Create = %v, want an error that is not a Mismatch", err)
	}
	if r.Name != "" {
		t.Errorf("Create reports the backup %s, want none", r.Name)
	}

	backups, err := d.List()
	if err != nil {
		t.Fatal(err)
	}
	if len(backups) != 0 {
		t.Errorf("the directory has the backups %v, want none", backups)
	}
}

// An unreadableFolder is a folder whose files can be opened, but not read.
type unreadableFolder struct{ Storage }

func (u unreadableFolder) Open(name string) (io.ReadCloser, error) {
	file, err := u.Storage.Open(name)
	if err != nil {
		return nil, err
	}
	return file, file.Close()
}

// TestUnreadableWhenNew shows that a new archive that cannot be read again stays, since it may be
// complete, and that the error keeps its cause.
func TestUnreadableWhenNew(t *testing.T) {
	id, dir := newKey(t), t.TempDir()
	folder := openFolder(t, dir)
	to := []age.Recipient{id.Recipient()}
	_, err := OpenDir(unreadableFolder{folder}).Create(t.Context(), to, newInstallation().source())
	if !errors.Is(err, os.ErrClosed) {
		t.Errorf("Create = %v, want %v", err, os.ErrClosed)
	}

	backups, err := OpenDir(folder).List()
	if err != nil {
		t.Fatal(err)
	}
	if len(backups) != 1 {
		t.Errorf("the directory has the backups %v, want one", backups)
	}
}

// TestDamage shows that changed, missing and unexpected entries of each kind are found. The damaged
// archive is encrypted again, so that decryption alone does not reveal the damage.
func TestDamage(t *testing.T) {
	id, dir := newKey(t), t.TempDir()
	create(t, dir, newInstallation(), id.Recipient(), "one.age")
	plain := decrypted(t, filepath.Join(dir, "one.age"), id)

	for name, damage := range map[string]mutation{
		"header":         replaced("header.json", `"schema": 7`, `"schema": "x"`),
		"version":        replaced("header.json", `"version": 1`, `"version": 2`),
		"column":         replaced("header.json", `"name": "id"`, `"name": "id", "integer": true`),
		"row":            rezipped("rows/parents/000000.jsonl.gz", "[\"a\",2,null]\n"),
		"extra row":      rezipped("rows/parents/000000.jsonl.gz", "[\"a\",1,null]\n[\"b\",1,null]\n"),
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
		if err := verify(t, a, id); err == nil {
			t.Errorf("%s: damage is not found", name)
		}
	}
}

// TestDamagedEncryption shows that changes to the encrypted archive are found.
func TestDamagedEncryption(t *testing.T) {
	id, dir := newKey(t), t.TempDir()
	create(t, dir, newInstallation(), id.Recipient(), "one.age")
	whole, err := os.ReadFile(filepath.Join(dir, "one.age"))
	if err != nil {
		t.Fatal(err)
	}

	for name, content := range map[string][]byte{
		"last byte missing": whole[:len(whole)-1],
		"half":              whole[:len(whole)/2],
		"empty":             nil,
		"first byte":        append([]byte{'A'}, whole[1:]...),
		"middle":            flipped(whole, len(whole)/2),
		"last byte":         flipped(whole, len(whole)-1),
	} {
		file := filepath.Join(dir, "damaged.age")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := Find(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(t, a, id); err == nil {
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
		"truncated":   whole[:len(whole)-1],
		"changed":     flipped(whole, len(whole)-1),
		"other bytes": other.Bytes(),
		"missing":     nil,
	} {
		err := os.WriteFile(file, content, 0o600)
		if content == nil {
			err = os.Remove(file)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(t, a, id); err == nil {
			t.Errorf("%s: damage is not found", name)
		}
	}
}

// TestDamageWhileReading shows that damage to a media file is a Mismatch even if the function that
// receives the bytes returns a different error.
func TestDamageWhileReading(t *testing.T) {
	id, dir := newKey(t), t.TempDir()
	a, _ := create(t, dir, newInstallation(), id.Recipient(), "")
	file := filepath.Join(dir, mediaFileOf(t, "sound one", id))
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, flipped(whole, len(whole)-1), 0o600); err != nil {
		t.Fatal(err)
	}

	ids := []age.Identity{id}
	var h Header
	_, _, err = a.Read(ids, Visitor{
		Header: func(found Header) error { h = found; return nil },
		Rows:   readAll,
		Bytes:  func(Object, io.Reader) error { return nil },
		Object: func(o Object) error {
			return a.Bytes(h, o, ids, func(r io.Reader) error {
				_, err := io.Copy(io.Discard, r)
				if err != nil {
					return errors.New("storing the bytes failed")
				}
				return nil
			})
		},
	})
	var mismatch *Mismatch
	if !errors.As(err, &mismatch) {
		t.Errorf("reading the damaged media = %v, want a Mismatch", err)
	}
}

// readAll reads all rows of a table.
func readAll(_ Table, rows iter.Seq2[[]any, error]) error {
	for _, err := range rows {
		if err != nil {
			return err
		}
	}
	return nil
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
			t.Error("a row with too many values is accepted")
		}
	})
	if allocations > 1000 {
		t.Errorf("parseRow allocates %.0f times for a row of 3 columns, want at most 1000", allocations)
	}
}

// flipped returns content with one bit changed in the byte with the given index.
func flipped(content []byte, index int) []byte {
	changed := bytes.Clone(content)
	changed[index] ^= 1
	return changed
}

// decrypted returns the tar archive in an encrypted file.
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

// rewrite encrypts the tar archive plain to a file. It first applies damage to each entry.
func rewrite(t *testing.T, plain []byte, file string, to age.Recipient, damage mutation) {
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

		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}

		name, content := damage(head.Name, content)
		if name == "" {
			continue
		}

		head.Name, head.Size = name, int64(len(content))
		if err := w.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
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

// A mutation changes the name and content of an entry. Entries whose name is then empty are omitted.
type mutation func(name string, content []byte) (string, []byte)

// renewed replaces the whole content of an entry.
func renewed(entry, text string) mutation {
	return func(name string, content []byte) (string, []byte) {
		if name == entry {
			content = []byte(text)
		}
		return name, content
	}
}

// replaced replaces a part of the content of an entry.
func replaced(entry, old, text string) mutation {
	return func(name string, content []byte) (string, []byte) {
		if name == entry {
			content = bytes.Replace(content, []byte(old), []byte(text), 1)
		}
		return name, content
	}
}

func removed(entry string) mutation { return renamed(entry, "") }

func renamed(entry, to string) mutation {
	return func(name string, content []byte) (string, []byte) {
		if name == entry {
			return to, content
		}
		return name, content
	}
}

// rezipped replaces the whole content of a compressed entry.
func rezipped(entry, text string) mutation {
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
