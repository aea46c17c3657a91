package command

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
)

// A Build identifies the sources from which a binary was built. All fields may be empty.
type Build struct {
	Version string
	Commit  string
	Date    string // RFC 3339
}

// version returns the version set by the linker or, if it is empty, the one that Go recorded.
func (b Build) version() string {
	if b.Version != "" {
		return b.Version
	}
	info, ok := debug.ReadBuildInfo()
	if ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version // set by `go install`, or by a build in a Git checkout
	}
	return "(devel)"
}

// time returns when the binary was built, or the Unix epoch if that is unknown.
func (b Build) time() time.Time {
	if at, err := time.Parse(time.RFC3339, b.Date); err == nil {
		return at
	}
	return time.Unix(0, 0).UTC()
}

type versionJSON struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Date    string `json:"date,omitempty"`
	Go      string `json:"go"`
	System  string `json:"system"`
}

func (c *commands) versionCommand() *cobra.Command {
	const short = "Print the version and build information"
	return cli.Command("version", short, func(*cobra.Command, []string) error {
		v := versionJSON{
			Version: c.build.version(),
			Commit:  c.build.Commit,
			Date:    c.build.Date,
			Go:      runtime.Version(),
			System:  runtime.GOOS + "/" + runtime.GOARCH,
		}
		switch c.Output {
		case "id":
			_, err := fmt.Fprintln(c.Stdout, v.Version)
			return err
		case "json":
			return c.PrintJSON(v)
		}

		origin := ""
		if v.Commit != "" {
			origin = fmt.Sprintf("commit %s of %s, ", v.Commit, v.Date)
		}
		_, err := fmt.Fprintf(c.Stdout, "selvage %s (%s%s, %s)\n", v.Version, origin, v.Go, v.System)
		return err
	})
}

func (c *commands) manCommand() *cobra.Command {
	return cli.Command("man DIR", "Write the manual pages into a directory, one file for each command",
		func(cmd *cobra.Command, args []string) error {
			return cli.WriteManual(cmd.Root(), args[0], c.build.version(), c.build.time())
		})
}
