package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
)

func TestRoundTrip(t *testing.T) {
	t.Run("directory", func(t *testing.T) { testRoundTrip(t, "") })
	t.Run("file", func(t *testing.T) { testRoundTrip(t, "one.age") })
}

func testRoundTrip(t *testing.T, file string) {
	id, want := newKey(t), newInstallation()
	a, r := create(t, t.TempDir(), want, id.Recipient(), file)
	if r.Rows != 1201 {
		t.Errorf("the report has %d rows, want 1201", r.Rows)
	}
	if r.Recordings != 2 {
		t.Errorf("the report has %d recordings, want 2", r.Recordings)
	}
	if r.Added != 3 {
		t.Errorf("the report has %d added media files, want 3", r.Added)
	}
	if r.Manifest.Media.Files != 3 {
		t.Errorf("the manifest has %d media files, want 3", r.Manifest.Media.Files)
	}

	got, err := contentsOf(t, a, id)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.rows, got.rows); diff != "" {
		t.Errorf("the rows differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.media, got.media); diff != "" {
		t.Errorf("the media differs (-want +got):\n%s", diff)
	}
	if !slices.Equal(got.listed, want.listed) {
		t.Errorf("the listed recordings are %q, want %q", got.listed, want.listed)
	}

	if err := verify(t, a, id); err != nil {
		t.Errorf("Verify: %v, want success", err)
	}
	if _, err := contentsOf(t, a, newKey(t)); err == nil {
		t.Error("a different identity opens the backup")
	}
}

// TestStockTools shows that an archive can be read with age, tar and gzip, without this package.
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

	entries := untar(t, decrypted)
	if got := entries["rows/parents/000000.jsonl.gz"]; got != "[\"a\",1,null]\n" {
		t.Errorf("the rows of parents are %q, want the row of a", got)
	}
	if entries["rows/children/000001.jsonl.gz"] == "" {
		t.Error("the second file with rows of children is missing or empty")
	}
	if got := entries["media/k1.peaks"]; got != "peaks" {
		t.Errorf("the peaks of k1 are %q, want peaks", got)
	}

	var m Manifest
	if err := json.Unmarshal([]byte(entries["manifest.json"]), &m); err != nil {
		t.Fatalf("the manifest: %v", err)
	}
	if m.Rows() != 1201 {
		t.Errorf("the manifest has %d rows, want 1201", m.Rows())
	}
}

// untar returns the entries of a tar archive by name. It decompresses those whose name ends with .gz.
func untar(t *testing.T, r io.Reader) map[string]string {
	t.Helper()
	entries := make(map[string]string)
	for archive := tar.NewReader(r); ; {
		head, err := archive.Next()
		if err == io.EOF {
			return entries
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
	if r.Added != 1 {
		t.Errorf("the second backup adds %d media files, want 1", r.Added)
	}
	if want := int64(len("sound three")); r.AddedBytes != want {
		t.Errorf("the second backup adds %d bytes, want %d", r.AddedBytes, want)
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
		t.Fatalf("Prune = %q, %v, want one backup removed", removed, err)
	}

	backups, err := OpenDir(openFolder(t, dir)).List()
	if err != nil || len(backups) != 1 {
		t.Fatalf("List = %+v, %v, want one backup", backups, err)
	}
	if backups[0].Name != newest.Name {
		t.Errorf("the remaining backup is %s, want the newest, %s", backups[0].Name, newest.Name)
	}
	if backups[0].Rows != 1201 {
		t.Errorf("the remaining backup has %d rows, want 1201", backups[0].Rows)
	}

	if err := verify(t, newest, id); err != nil {
		t.Errorf("Verify after Prune: %v, want success", err)
	}
	left := 0
	err = openFolder(t, dir).Files("media", func(File) error { left++; return nil })
	if err != nil || left != 2 {
		t.Errorf("%d media files are left, %v, want 2", left, err)
	}
}

// TestUnfinished shows that a backup removes the files that a killed backup has left behind, and nothing
// else.
func TestUnfinished(t *testing.T) {
	id, dir, i := newKey(t), t.TempDir(), newInstallation()
	create(t, dir, i, id.Recipient(), "")
	archive := archivePrefix + i.now.Add(-time.Hour).UTC().Format(timeFormat) + archiveSuffix
	unfinished := []string{
		archive + partMark,
		archive + summarySuffix + partMark,
		mediaFileOf(t, "sound of a deleted recording", id) + partMark,
	}
	others := []string{
		"one.age" + partMark,
		"notes/" + archive + partMark,
	}
	for _, name := range append(slices.Clone(unfinished), others...) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("part"), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	i.now = i.now.Add(time.Hour)
	a, _ := create(t, dir, i, id.Recipient(), "")
	for _, name := range unfinished {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Stat(%s) = %v, want %v", name, err, fs.ErrNotExist)
		}
	}
	for _, name := range others {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("Stat(%s) = %v, want the file", name, err)
		}
	}
	if err := verify(t, a, id); err != nil {
		t.Errorf("Verify = %v, want success", err)
	}
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
		t.Errorf("Find with only a backup dated in the future = %v, want an error that says so", err)
	}

	i.now = today
	a, _ := create(t, dir, i, id.Recipient(), "")
	if a.Name == inDir {
		t.Error("Find returns the backup dated in the future")
	}
	removed, err := OpenDir(openFolder(t, dir)).Prune(1, a.Name)
	if err != nil || len(removed) > 0 {
		t.Errorf("Prune = %q, %v, want nothing removed", removed, err)
	}

	i.now = today.Add(-time.Minute) // the clock was set back
	_, r := create(t, dir, i, id.Recipient(), "")
	removed, err = OpenDir(openFolder(t, dir)).Prune(1, r.Name)
	if want := []string{a.Name}; err != nil || !slices.Equal(removed, want) {
		t.Errorf("Prune = %q, %v, want %q removed", removed, err, want)
	}

	summary := fmt.Sprintf(`{"name":%q,"created_at":"2099-01-01T00:00:00Z","rows":7}`, r.Name)
	if err := os.WriteFile(filepath.Join(dir, r.Name+summarySuffix), []byte(summary), 0o600); err != nil {
		t.Fatal(err)
	}
	backups, err := OpenDir(openFolder(t, dir)).List()
	if err != nil {
		t.Fatal(err)
	}

	newest, found, inFuture := Newest(backups)
	if !found || newest.Name != r.Name {
		t.Errorf("Newest finds %t, the backup %q, want the last backup, %q", found, newest.Name, r.Name)
	}
	if newest.Rows != 7 {
		t.Errorf("the newest backup has %d rows, want the 7 of its summary", newest.Rows)
	}
	if len(inFuture) != 1 {
		t.Errorf("Newest finds %d backups dated in the future, want 1: %+v", len(inFuture), inFuture)
	}
}

// TestOtherRecipients shows that each backup in a directory can still be read with the identity
// that it was made for, after the recipients have changed.
func TestOtherRecipients(t *testing.T) {
	old, fresh := newKey(t), newKey(t)
	dir, i := t.TempDir(), newInstallation()
	first, _ := create(t, dir, i, old.Recipient(), "")
	i.now = i.now.Add(time.Hour)
	second, r := create(t, dir, i, fresh.Recipient(), "")
	if r.Added != 3 {
		t.Errorf("the backup for other recipients writes %d media files, want 3", r.Added)
	}

	if err := verify(t, first, old); err != nil {
		t.Errorf("Verify of the first backup with its identity: %v, want success", err)
	}
	if err := verify(t, first, fresh); err == nil {
		t.Error("Verify of the first backup succeeds with the new identity")
	}
	if err := verify(t, second, fresh); err != nil {
		t.Errorf("Verify of the second backup with its identity: %v, want success", err)
	}
	if err := verify(t, second, old); err == nil {
		t.Error("Verify of the second backup succeeds with the old identity")
	}
}

// TestLastCopies shows that if the files of recordings are lost or damaged, Prune keeps their media
// for earlier recipients.
func TestLastCopies(t *testing.T) {
	old, fresh := newKey(t), newKey(t)
	dir, i := t.TempDir(), newInstallation()
	create(t, dir, i, old.Recipient(), "")
	var copies []string
	for _, key := range i.listed {
		copies = append(copies, filepath.Join(dir, mediaFileOf(t, i.media[key], old)))
	}
	lastUse := i.now.Add(-48 * time.Hour)
	for _, name := range copies {
		if err := os.Chtimes(name, lastUse, lastUse); err != nil {
			t.Fatal(err)
		}
	}

	i.now = i.now.Add(time.Hour)
	s := i.source()
	s.Exists = func(context.Context, string) (bool, error) { return true, nil }
	s.Open = func(key string) (io.ReadSeekCloser, error) {
		if key == "k1" {
			return nil, fs.ErrNotExist
		}
		return memory{bytes.NewReader([]byte("damaged"))}, nil
	}
	d := OpenDir(openFolder(t, dir))
	r, err := d.Create(t.Context(), []age.Recipient{fresh.Recipient()}, s)
	var mismatch *Mismatch
	if !errors.As(err, &mismatch) {
		t.Fatalf("Create with lost and damaged files = %v, want a Mismatch", err)
	}

	removed, err := d.Prune(1, r.Name)
	if err != nil || len(removed) != 1 {
		t.Fatalf("Prune = %q, %v, want one backup removed", removed, err)
	}
	for _, name := range copies {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("after Prune: %v", err)
		}
	}
}

// TestDigestOf shows that the digest depends neither on the order of recipients nor on duplicates.
func TestDigestOf(t *testing.T) {
	a, b := newKey(t).Recipient(), newKey(t).Recipient()
	want, err := digestOf([]age.Recipient{a, b})
	if err != nil {
		t.Fatal(err)
	}
	got, err := digestOf([]age.Recipient{b, a, a})
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("the digest in the other order is %s, want %s", got, want)
	}
}

// TestCheck shows that a backup with a changed header or manifest, or one that was made with a
// different key, is intact but not authentic.
func TestCheck(t *testing.T) {
	id, dir := newKey(t), t.TempDir()
	create(t, dir, newInstallation(), id.Recipient(), "one.age")
	plain := decrypted(t, filepath.Join(dir, "one.age"), id)
	var other Key
	other.Secret[31] = 1
	tests := []struct {
		name   string
		damage mutation
		key    Key
		want   error
	}{
		{name: "unchanged", damage: replaced("", "", "")},
		{name: "other key", damage: replaced("", "", ""), key: other, want: ErrForged},
		{name: "header", damage: replaced("header.json", `"schema": 7`, `"schema": 8`), want: ErrForged},
		{name: "manifest", damage: replaced("manifest.json", `"tables"`, `"other": 1, "tables"`), want: ErrForged},
		{name: "code", damage: renewed("manifest.hmac", strings.Repeat("0", 64)+"\n"), want: ErrForged},
		{name: "shorter code", damage: renewed("manifest.hmac", "00\n"), want: ErrForged},
		{name: "empty code", damage: renewed("manifest.hmac", ""), want: ErrForged},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(dir, "changed.age")
			rewrite(t, plain, file, id.Recipient(), tt.damage)
			a, err := Find(file)
			if err != nil {
				t.Fatal(err)
			}
			_, m, err := a.Verify(t.Context(), []age.Identity{id}, func(string) {})
			if err != nil {
				t.Fatal(err)
			}

			if err := m.Check(tt.key); !errors.Is(err, tt.want) {
				t.Errorf("Check = %v, want %v", err, tt.want)
			}
		})
	}
}
