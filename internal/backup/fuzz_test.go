package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// pack returns an archive without encryption. The arguments alternate between the name and the text
// of an entry. Entries whose name ends with .gz are compressed.
func pack(f *testing.F, entries ...string) []byte {
	f.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		name, text := entries[i], entries[i+1]
		if strings.HasSuffix(name, ".gz") {
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			if _, err := io.WriteString(z, text); err != nil {
				f.Fatal(err)
			}
			if err := z.Close(); err != nil {
				f.Fatal(err)
			}
			text = packed.String()
		}

		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o600}); err != nil {
			f.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			f.Fatal(err)
		}
	}

	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	return b.Bytes()
}

// FuzzArchive shows that no archive makes the reader panic, that rows have as many values as their
// table has columns, and that data after the last entry is an error. Entries are compressed, so even
// a short archive may expand to an entry of very long lines.
func FuzzArchive(f *testing.F) {
	const columns = `[{"name":"id"},{"name":"n","integer":true}]`
	header := fmt.Sprintf(
		`{"format":%q,"version":%d,"media_inside":true,"tables":[{"name":"a","columns":%s}]}`,
		format, version, columns)
	const rows = rowsPrefix + "a/000000.jsonl.gz"
	f.Add(pack(f,
		headerName, header,
		rows, "[\"x\",1]\n[null,-9223372036854775808]\n",
		manifestName, "{}",
		codeName, "00"))
	f.Add(pack(f, headerName, header, rows, `["x",1.5]`))
	f.Add(pack(f, headerName, header, rows, "["+strings.Repeat("1,", 50_000)+"1]"))
	f.Add(pack(f, headerName, header, rows, strings.Repeat("[", 20_000)))
	f.Add(pack(f,
		headerName, header,
		mediaPrefix+"../../x", "y",
		objectsPrefix+"000000.jsonl.gz", `{"key":"../../x","bytes":1}`,
		manifestName, "{}",
		codeName, "zz"))
	f.Add(pack(f, headerName, header, rowsPrefix+"a/000001.jsonl.gz", "", "unknown", ""))
	f.Add(pack(f, headerName, `{"format":"x"}`))
	damaged := pack(f, headerName, header, mediaPrefix+"x", "sound")
	invalidEntry := bytes.Repeat([]byte("x"), 512)
	f.Add(append(damaged[:len(damaged)-1024], invalidEntry...)) // instead of the end of the archive
	f.Add(bytes.Repeat([]byte{0}, 2048))

	bound := fuzzcost.Bound{
		CPU:        400 * time.Millisecond,
		CPUPerByte: 10 * time.Microsecond,
		Heap:       96 << 20,
		PerByte:    4 << 10,
	}
	f.Fuzz(func(t *testing.T, archive []byte) {
		bound.Check(t, len(archive), func() {
			r := &reader{
				tar:     tar.NewReader(bytes.NewReader(archive)),
				inside:  make(map[string]Object),
				covered: newCovered(),
				Visitor: Visitor{
					Header: func(Header) error { return nil },
					Bytes:  func(Object, io.Reader) error { return nil },
					Object: func(Object) error { return nil },
					Rows: func(table Table, rows iter.Seq2[[]any, error]) error {
						for row, err := range rows {
							if err == nil && len(row) != len(table.Columns) {
								t.Errorf("a row of %d columns has %d values", len(table.Columns), len(row))
							}
						}
						return nil
					},
				},
			}
			if _, err := r.read(); err == nil && r.entry != nil {
				t.Error("the archive has data after its end")
			}
		})
	})
}
