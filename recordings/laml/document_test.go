package laml_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata")

// TestDocuments compares documents with testdata byte by byte. It first replaces ids that differ
// between runs.
func TestDocuments(t *testing.T) {
	s := newServer(t)
	tests := []struct{ name, file, query string }{
		{"call.json", "speech_stereo_8k.wav",
			"CallSid=c-1&From=/private/alice&To=%2B15551234&Direction=outbound&StartTime=1795251600" +
				"&Track=both&Source=DialVerb"},
		{"conference.json", speech, "ConferenceSid=room%201"},
		{"repaired.json", "truncated_mid_data.wav", ""},
		{"absent.json", "header_only_44.wav", ""},
	}

	for _, tt := range tests {
		sid := s.upload(t, tt.file, tt.query)
		a := s.do(t, "GET", s.path("/Recordings/"+sid+".json"), s.basic)
		var got bytes.Buffer
		if err := json.Indent(&got, a.body, "", "\t"); err != nil {
			t.Fatalf("%s = %q: %v", tt.name, a.body, err)
		}

		text := strings.NewReplacer(sid, "SID", s.project, "ACCOUNT").Replace(got.String())
		golden := filepath.Join("testdata", tt.name)
		if *update {
			if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}

		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if text != string(want) {
			t.Errorf("%s = %s\nwant %s", tt.name, text, want)
		}
	}
}
