package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manCommand writes manual pages. They have the day of the build, so that those of a
// release are the same bytes wherever they are made.
func (c *cli) manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write manual pages, a file a command, into a directory", Args: positional("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("writing manual pages: %w", err)
			}
			day := builtAt()
			root := cmd.Root()
			root.DisableAutoGenTag = true
			gatherFlags(root)
			if err := doc.GenManTree(root, &doc.GenManHeader{Title: "SELVAGE", Section: "1", Date: &day, Source: "selvage " + version(), Manual: "selvage"}, args[0]); err != nil {
				return fmt.Errorf("writing manual pages: %w", err)
			}
			return nil
		},
	}
}

// builtAt returns when the binary was built, by the commit; the beginning of time where
// nobody knows.
func builtAt() time.Time {
	if at, err := time.Parse(time.RFC3339, buildDate); err == nil {
		return at
	}
	return time.Unix(0, 0).UTC()
}
