package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/server"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/store/storetest"
)

// TestLongImportLines shows that an import accepts any number of empty lines, and stops at a line that
// is too long.
func TestLongImportLines(t *testing.T) {
	const count = 2 * maxImportLine
	accepted := map[string]string{
		"empty lines":         strings.Repeat("\n", count),
		"empty lines of CRLF": strings.Repeat("\r\n", count),
	}
	for name, between := range accepted {
		t.Run(name, func(t *testing.T) {
			in := importAfter(t, between)
			record, line, err := in.read()
			if err != nil {
				t.Fatalf("reading the address: %v", err)
			}
			if record[0] != "ann@example.com" || line != count+2 {
				t.Errorf("read = %q in line %d, want the address in line %d", record, line, count+2)
			}
			_, _, err = in.read()
			if !errors.Is(err, io.EOF) {
				t.Errorf("reading past the address: %v, want the end", err)
			}
		})
	}

	rejected := map[string]string{
		"a long line":     strings.Repeat("a", count) + "\n",
		"a missing quote": `"` + strings.Repeat("\n", count),
		"a missing LF":    strings.Repeat("\r", count),
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

// TestImportStops shows that a failure of the database stops an import of subscribers, without rejecting
// the line that was being imported.
func TestImportStops(t *testing.T) {
	dir := storetest.Dir(t)
	rows := storetest.Open(t, dir, nil)
	f := fabric.New(fabric.Config{Stores: rows.Fabric(), Ring: storetest.Ring(t, dir, rows, nil)})
	project := storetest.AddProject(t, rows, time.Now())
	in, err := newSubscriberImport(f.Subscribers, project, strings.NewReader("email\nann@example.com\n"))
	if err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()

	line, err := in.next(stopped)
	if err == nil || !strings.Contains(err.Error(), "line 2: ") {
		t.Errorf("next without the database = %v, want an error about line 2", err)
	}
	if line.Status != "" {
		t.Errorf("the line is %s, want no outcome", line.Status)
	}
}

// TestRecordingImportStops shows that a failure of the database stops an import of recordings, without
// rejecting the file that was being imported.
func TestRecordingImportStops(t *testing.T) {
	rows := storetest.Rows(t)
	var out bytes.Buffer
	env := &cli.Env{Stdout: &out, Stderr: io.Discard, Output: "json"}
	archive := recordings.New(recordings.Config{Store: rows, Media: storetest.Media(t, t.TempDir())})
	im := &importer{
		recordingCommands: recordingCommands{&commands{Env: env}},
		app:               &app{&server.App{Recordings: archive}},
		projectID:         storetest.AddProject(t, rows, time.Now()),
		open:              os.Open,
		progress:          env.NewProgress("file"),
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()

	err := im.importFiles(stopped, []string{"../demo/welcome.wav"})
	if err == nil || !strings.Contains(err.Error(), "were not imported") {
		t.Errorf("importFiles without the database = %v, want an error about the rest", err)
	}
	if out.Len() > 0 || im.rejects > 0 {
		t.Errorf("importFiles rejected %d files, and printed %q, want neither", im.rejects, out.String())
	}
}
