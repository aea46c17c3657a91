package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/doctor"
)

func (c *cli) doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong, and tell what to do",
		Long: "Looks at the configuration, the data directory, the databases, keys, certificates, listeners and the\n" +
			"running server, beside it or without one. It changes nothing, and takes ten seconds at most. The exit\n" +
			"status is 1 where something failed, and 0 where there are but warnings.",
		Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				c.output = "json"
			}
			return c.doctor(cmd)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, as -o json does")
	config.AddFlags(cmd.Flags(), false)
	return cmd
}

func (c *cli) doctor(cmd *cobra.Command) error {
	var findings []doctor.Finding
	if conf, from, err := c.loadConfig(cmd.Flags()); err != nil {
		findings = doctor.Unreadable(err)
	} else {
		e := &doctor.Examination{Config: conf, From: from, Getenv: c.getenv, Version: version()}
		findings = append(e.Configuration(), e.Examine(cmd.Context())...)
	}
	if err := c.printFindings(findings); err != nil {
		return err
	}
	return sumUp(findings)
}

// sumUp is an error where something is broken.
func sumUp(findings []doctor.Finding) error {
	if n := count(findings, doctor.Broken); n == 1 {
		return fmt.Errorf("1 check of %d failed", len(findings))
	} else if n > 1 {
		return fmt.Errorf("%d checks of %d failed", n, len(findings))
	}
	return nil
}

func count(findings []doctor.Finding, v doctor.Verdict) (n int) {
	for _, f := range findings {
		if f.Status == v {
			n++
		}
	}
	return n
}
