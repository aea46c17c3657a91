package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// What the Makefile says of a build: the version by `git describe`, the commit and its
// time in RFC 3339. Go knows some of it where nothing was said.
var build, buildCommit, buildDate string

// A built says what a binary was built of.
type built struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Date    string `json:"date,omitempty"`
	Go      string `json:"go"`
	System  string `json:"system"`
}

var builds = view[built]{
	id:   func(b built) string { return b.Version },
	json: func(b built) any { return b },
	facts: []fact[built]{
		{name: "selvage", value: func(b built) string { return b.Version }},
		{name: "commit", value: func(b built) string { return b.Commit }},
		{name: "date", value: func(b built) string { return b.Date }},
		{name: "go", value: func(b built) string { return b.Go + " " + b.System }},
	},
}

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, and what it was built of",
		Args:  positional(),
		RunE: func(*cobra.Command, []string) error {
			b := built{version(), buildCommit, buildDate, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			if c.output != "table" {
				return one(c, builds, b)
			}
			about := ""
			if b.Commit != "" {
				about = fmt.Sprintf("commit %s of %s, ", b.Commit, b.Date)
			}
			_, err := fmt.Fprintf(c.stdout, "selvage %s (%s%s, %s)\n", b.Version, about, b.Go, b.System)
			return err
		},
	}
}

// version returns the version that the Makefile or Go noted when the binary was built.
func version() string {
	info, ok := debug.ReadBuildInfo()
	switch {
	case build != "":
		return build
	case ok && info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version // of `go install`, or with the commit where Go was let see it
	}
	return "(devel)"
}
