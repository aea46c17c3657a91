package backup

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
)

func TestRoundTrip(t *testing.T) {
	for _, file := range []string{"", "one.age"} {
		id, want := newKey(t), newInstallation()
		a, r := create(t, t.TempDir(), want, id.Recipient(), file)
		if r.Rows != 1201 || r.Recordings != 2 || r.Added != 3 || r.Manifest.Media.Files != 3 {
			t.Errorf("%q: report %+v, want 1201 rows, 2 recordings and 3 media files", file, r)
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
			t.Errorf("%q: Verify: %v, want success", file, err)
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
		t.Errorf("the rows of parents are %q, want the row of a", got)
	}
	if entries["rows/children/000001.jsonl.gz"] == "" || entries["media/k1.peaks"] != "peaks" {
		t.Error("rows or media are missing")
	}

	var m Manifest
	if err := json.Unmarshal([]byte(entries["manifest.json"]), &m); err != nil || m.Rows() != 1201 {
		t.Errorf("manifest: %v, %d rows, want 1201", err, m.Rows())
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
		t.Errorf("the second backup adds %d files, %d bytes, want only k3", r.Added, r.AddedBytes)
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

	all, err := OpenDir(openFolder(t, dir)).List()
	if err != nil || len(all) != 1 || all[0].Name != newest.Name || all[0].Rows != 1201 {
		t.Errorf("List = %+v, %v, want only the newest backup", all, err)
	}

	if _, _, err := newest.Verify(t.Context(), []age.Identity{id}, func(string) {}); err != nil {
		t.Errorf("Verify after Prune: %v, want success", err)
	}
	left := 0
	if err := openFolder(t, dir).Files("media", func(File) error { left++; return nil }); err != nil || left != 2 {
		t.Errorf("%d files of media are left (%v), want 2", left, err)
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
		t.Errorf("Newest = %+v, %t, %+v; %v, want the last backup, and one dated in the future",
			newest, found, dated, err)
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

	for name, test := range map[string]struct {
		a     Archive
		id    age.Identity
		reads bool
	}{
		"first, old":  {first, old, true},
		"first, new":  {first, fresh, false},
		"second, new": {second, fresh, true},
		"second, old": {second, old, false},
	} {
		_, _, err := test.a.Verify(t.Context(), []age.Identity{test.id}, func(string) {})
		if (err == nil) != test.reads {
			t.Errorf("backup and identity %s: Verify = %v", name, err)
		}
	}

	one, err := digestOf([]age.Recipient{old.Recipient(), fresh.Recipient()})
	other, otherErr := digestOf([]age.Recipient{fresh.Recipient(), old.Recipient(), old.Recipient()})
	if one != other || err != nil || otherErr != nil {
		t.Errorf("the order of recipients matters: %s, %s; %v, %v", one, other, err, otherErr)
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
