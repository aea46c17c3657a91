package command

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// TestLongImportLines shows that an import accepts any number of empty lines, and stops at a line that
// is too long.
func TestLongImportLines(t *testing.T) {
	const most = 2 * maxImportLine
	accepted := map[string]string{
		"empty lines":         strings.Repeat("\n", most),
		"empty lines of CRLF": strings.Repeat("\r\n", most),
	}
	for name, between := range accepted {
		t.Run(name, func(t *testing.T) {
			in := importAfter(t, between)
			record, line, err := in.read()
			if err != nil {
				t.Fatalf("reading the address: %v", err)
			}
			if record[0] != "ann@example.com" || line != most+2 {
				t.Errorf("read = %q in line %d, want the address in line %d", record, line, most+2)
			}
			_, _, err = in.read()
			if !errors.Is(err, io.EOF) {
				t.Errorf("reading past the address: %v, want the end", err)
			}
		})
	}

	rejected := map[string]string{
		"a long line":     strings.Repeat("a", most) + "\n",
		"a missing quote": `"` + strings.Repeat("\n", most),
		"a missing LF":    strings.Repeat("\r", most),
	}
	for name, between := range rejected {
		t.Run(name, func(t *testing.T) {
			in := importAfter(t, between)
			_, _, err := in.read()
			if !errors.Is(err, errLongImportLine) {
				t.Errorf("read: %v, want %v", err, errLongImportLine)
			}
		})
	}
}

// importAfter returns an import of one address that follows between.
func importAfter(t *testing.T, between string) *subscriberImport {
	t.Helper()
	in, err := newSubscriberImport(nil, "p", strings.NewReader("email\n"+between+"ann@example.com\n"))
	if err != nil {
		t.Fatal(err)
	}
	return in
}
