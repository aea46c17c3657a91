package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
)

// TestInterruptedService shows that an interrupted import stops, and does not report the other
// recordings of the page as rejected.
func TestInterruptedService(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/Recordings.json") {
			fmt.Fprint(w, `{"recordings": [
				{"sid": "first", "status": "completed"},
				{"sid": "second", "status": "completed"},
				{"sid": "third", "status": "completed"}
			]}`)
			return
		}
		interrupt()
		<-r.Context().Done()
	}))
	defer service.Close()

	var out bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader("token\n"), Stdout: &out, Stderr: &out}
	c := recordingCommands{&commands{Env: env}}
	im := &importer{recordingCommands: c, progress: c.NewProgress("file")}
	cmd := c.recordingImportCommand()
	if err := cmd.Flags().Set("account", "account"); err != nil {
		t.Fatal(err)
	}

	err := im.importService(ctx, cmd, service.URL)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("importService = %v, want %v", err, context.Canceled)
	}
	if got := out.String(); strings.Contains(got, "second") || strings.Contains(got, "third") {
		t.Errorf("the interrupted import reported recordings it did not try:\n%s", got)
	}
}
