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
	for name, tt := range map[string]struct {
		between string
		want    error
	}{
		"empty lines":         {strings.Repeat("\n", most), io.EOF},
		"empty lines of CRLF": {strings.Repeat("\r\n", most), io.EOF},
		"a long line":         {strings.Repeat("a", most) + "\n", errLongImportLine},
		"a missing quote":     {`"` + strings.Repeat("\n", most), errLongImportLine},
		"a missing LF":        {strings.Repeat("\r", most), errLongImportLine},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := newSubscriberImport(nil, "p", strings.NewReader("email\n"+tt.between+"ann@example.com\n"))
			if err != nil {
				t.Fatal(err)
			}

			record, line, err := in.read()
			if tt.want == io.EOF {
				if err != nil || record[0] != "ann@example.com" || line != most+2 {
					t.Fatalf("read = %q, line %d, %v, want the address in line %d", record, line, err, most+2)
				}
				_, _, err = in.read()
			}
			if !errors.Is(err, tt.want) {
				t.Errorf("read: %v, want %v", err, tt.want)
			}
		})
	}
}
