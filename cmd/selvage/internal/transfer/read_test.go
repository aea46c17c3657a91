package transfer_test

import (
	"strings"
	"testing"

	"github.com/selvage/selvage/cmd/selvage/internal/transfer"
)

// TestReadJoinedFiles shows that two files that were joined are an error, because only the first one is
// read. Empty lines at the end of a file are ignored.
func TestReadJoinedFiles(t *testing.T) {
	const file = `{"kind":"selvage-export","version":1}` + "\n" +
		`{"kind":"project","id":"p","name":"Acme"}` + "\n" +
		`{"kind":"end","records":1}` + "\n"
	tests := []struct{ name, text, want string }{
		{
			name: "one file",
			text: file,
		},
		{
			name: "empty lines",
			text: file + "\r\n\n",
		},
		{
			name: "two files",
			text: file + "\n" + file,
			want: "line 5: the file continues after its end",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			records := 0
			var failure error
			for line, err := range transfer.Read(strings.NewReader(tt.text)) {
				if err != nil {
					failure = err
				} else if line.Record != nil {
					records++
				}
			}

			if records != 1 {
				t.Errorf("Read returns %d records, want 1", records)
			}
			if tt.want == "" && failure != nil {
				t.Errorf("Read = %v, want no error", failure)
			}
			if tt.want != "" && (failure == nil || !strings.Contains(failure.Error(), tt.want)) {
				t.Errorf("Read = %v, want an error with %q", failure, tt.want)
			}
		})
	}
}
