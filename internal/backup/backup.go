// Package backup writes and reads backups: the rows of a database, and the media of recordings.
//
// A backup is a tar archive that is encrypted with age (https://age-encryption.org/v1). Standard
// tools can open it:
//
//	age --decrypt --identity key.txt FILE | tar --extract
//
// The archive has these entries, in this order:
//
//	header.json                  the version of the format and of the schema, and all columns
//	rows/TABLE/000000.jsonl.gz   rows: one JSON array on each line, ordered by the primary key
//	media/KEY, media/KEY.PART    the bytes of a recording, and facts about them
//	objects/000000.jsonl.gz      a line with an Object for each file, after the file's bytes
//	manifest.json                the number of rows and the SHA-256 of each table and of the objects
//	manifest.hmac                the authentication code of the header and the manifest, in hex
//
// Rows and objects are split into parts of about a megabyte, so that neither the writer nor the
// reader holds a table in memory. The SHA-256 of a table covers all its lines; it is the same for
// the same rows in SQLite and in PostgreSQL. The manifest and its code come last. An archive
// without them is incomplete.
//
// Anyone who knows the recipients can encrypt an archive for them. The authentication code, which
// needs a [Key], proves that the installation itself made the backup.
//
// In a [Dir], media files are stored outside the archive, in media/ab/SHA256-RECIPIENTS.age. Each
// file is encrypted separately, and named after the SHA-256 of its bytes and a digest of the
// recipients, so that later backups for the same recipients can share it.
//
// The master key is never part of a backup. Without it, the sealed secrets in the rows cannot be
// opened.
package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/selvage/selvage/internal/database"
)

// This package writes and reads only this format.
const (
	format  = "selvage backup"
	version = 1
)

// A Header is the first entry of an archive.
type Header struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Program string    `json:"program"` // the version of selvage
	Created time.Time `json:"created"`
	Schema  int64     `json:"schema"`
	Inside  bool      `json:"media_inside"` // whether the archive contains the bytes of the media
	Tables  []Table   `json:"tables"`

	// Recipients is the digest of the recipients in the names of media files outside the archive;
	// see the package comment.
	Recipients string `json:"recipients,omitempty"`

	// MasterKey is the fingerprint of the master key that opens the secrets in the rows, and from
	// which the [Key] of the backup is derived.
	MasterKey string `json:"master_key"`
}

// A Table describes a table. Its columns are in the order of the values in its rows.
type Table struct {
	Name    string   `json:"name"`
	Columns []Column `json:"columns"`
}

// A Column is a column of a table. Its values are integers or text.
type Column struct {
	Name    string `json:"name"`
	Integer bool   `json:"integer,omitempty"`
}

// TableOf returns the description of a database's table.
func TableOf(t database.Table) Table {
	described := Table{Name: t.Name}
	for _, c := range t.Columns {
		described.Columns = append(described.Columns, Column(c))
	}
	return described
}

// An Object is a file of the media: the bytes of a recording, or a part with facts about them.
type Object struct {
	Key     string `json:"key"`
	Part    string `json:"part,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"`
	SHA256  string `json:"sha256,omitempty"`  // in hex
	Deleted bool   `json:"deleted,omitempty"` // the recording was deleted while the backup was written
	Missing bool   `json:"missing,omitempty"` // the recording exists, but its bytes are missing
}

// name returns the name of the entry with the object's bytes.
func (o Object) name() string {
	if o.Part == "" {
		return mediaPrefix + o.Key
	}
	return mediaPrefix + o.Key + "." + o.Part
}

// absent reports whether the backup has no bytes of the object.
func (o Object) absent() bool { return o.Deleted || o.Missing }

// The names of the entries in an archive.
const (
	headerName    = "header.json"
	manifestName  = "manifest.json"
	codeName      = "manifest.hmac"
	rowsPrefix    = "rows/"
	objectsPrefix = "objects/"
	mediaPrefix   = "media/"
)

// A Manifest describes everything that precedes it in an archive. Readers compare it with what they
// have read.
type Manifest struct {
	Tables []Sum `json:"tables"`
	Media  Media `json:"media"`

	// The digest of the covered texts and their authentication code, if the manifest was read from
	// an archive.
	covered, code []byte
}

// Rows returns the total number of rows in all tables.
func (m Manifest) Rows() (n int64) {
	for _, t := range m.Tables {
		n += t.Rows
	}
	return n
}

// A Sum is the number of rows of a table, and the SHA-256 of their lines in hex.
type Sum struct {
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
	SHA256 string `json:"sha256"`
}

// Media counts the media of a backup.
type Media struct {
	Recordings int64  `json:"recordings"`
	Files      int64  `json:"files"` // recordings and their parts
	Bytes      int64  `json:"bytes"`
	Deleted    int64  `json:"deleted,omitempty"`
	Missing    int64  `json:"missing,omitempty"`
	SHA256     string `json:"sha256"` // digest of the lines that list the objects, in hex
}

func (m *Media) add(o Object) {
	switch {
	case o.Deleted:
		m.Deleted++
		return
	case o.Missing:
		m.Missing++
		return
	case o.Part == "":
		m.Recordings++
	}
	m.Files++
	m.Bytes += o.Bytes
}

// A Digest computes the [Sum] of a table.
type Digest struct {
	rows int64
	hash hash.Hash
	line bytes.Buffer
	enc  *json.Encoder
}

// NewDigest returns the Digest of an empty table.
func NewDigest() *Digest {
	d := &Digest{hash: sha256.New()}
	d.enc = json.NewEncoder(&d.line)
	d.enc.SetEscapeHTML(false)
	return d
}

// Add adds a row and returns its line, which is valid until the next call.
func (d *Digest) Add(row any) ([]byte, error) {
	d.line.Reset()
	if err := d.enc.Encode(row); err != nil {
		return nil, err
	}
	d.rows++
	d.hash.Write(d.line.Bytes())
	return d.line.Bytes(), nil
}

// Sum returns the sum of the rows added so far.
func (d *Digest) Sum(name string) Sum {
	return Sum{Name: name, Rows: d.rows, SHA256: hex.EncodeToString(d.hash.Sum(nil))}
}

// Compare returns an error that names each table whose Sum in got differs from that in want.
func Compare(got, want []Sum) error {
	found := make(map[string]Sum)
	for _, s := range got {
		found[s.Name] = s
	}

	var errs []error
	for _, w := range want {
		switch g, ok := found[w.Name]; {
		case !ok:
			errs = append(errs, fmt.Errorf("table %s is missing", w.Name))
		case g.Rows != w.Rows:
			errs = append(errs, fmt.Errorf("table %s has %d rows, not %d", w.Name, g.Rows, w.Rows))
		case g.SHA256 != w.SHA256:
			errs = append(errs, fmt.Errorf("the rows of table %s have SHA-256 %s, not %s", w.Name, g.SHA256, w.SHA256))
		}
		delete(found, w.Name)
	}

	for name := range found {
		errs = append(errs, fmt.Errorf("table %s is not in the manifest", name))
	}
	return errors.Join(errs...)
}

// ParseRecipients parses age recipients, such as age1….
func ParseRecipients(all []string) (recipients []age.Recipient, err error) {
	for _, text := range all {
		found, err := age.ParseRecipients(strings.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%q is not an age recipient, such as age1…: %w", text, err)
		}
		recipients = append(recipients, found...)
	}
	return recipients, nil
}

// digestOf returns a digest of recipients. It does not depend on their order.
func digestOf(recipients []age.Recipient) (string, error) {
	var texts []string
	for _, r := range recipients {
		text, ok := r.(fmt.Stringer)
		if !ok {
			return "", fmt.Errorf("an age recipient of the type %T has no text form", r)
		}
		texts = append(texts, text.String())
	}
	slices.Sort(texts)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(texts), "\n")))
	return hex.EncodeToString(sum[:8]), nil
}

// ParseIdentities parses a file of age identities, such as AGE-SECRET-KEY-1….
func ParseIdentities(r io.Reader) ([]age.Identity, error) {
	identities, err := age.ParseIdentities(r)
	if err != nil {
		return nil, fmt.Errorf("reading age identities: %w", err)
	}
	return identities, nil
}

// NewIdentity returns a new age identity in text form, and the recipient that encrypts for it.
func NewIdentity() (identity, recipient string, err error) {
	i, err := age.GenerateX25519Identity()
	if err != nil {
		return "", "", fmt.Errorf("creating an age identity: %w", err)
	}
	return i.String(), i.Recipient().String(), nil
}
