package main

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/internal/ca"
)

// A localCA is the certificate authority as it is printed.
type localCA struct {
	*ca.Authority
	file string
}

var localCAs = view[localCA]{
	id: localCA.fingerprint,
	json: func(a localCA) any {
		return struct {
			File        string   `json:"file"`
			Subject     string   `json:"subject"`
			Fingerprint string   `json:"sha256"`
			ExpiresAt   moment   `json:"expires_at"`
			Names       []string `json:"names"`
		}{a.file, a.Certificate().Subject.CommonName, a.fingerprint(), iso(a.Certificate().NotAfter), a.Names()}
	},
	facts: []fact[localCA]{
		{name: "File", value: func(a localCA) string { return a.file }},
		{name: "Subject", value: func(a localCA) string { return a.Certificate().Subject.CommonName }},
		{name: "SHA-256", value: localCA.fingerprint},
		{name: "Expires", value: func(a localCA) string { return a.Certificate().NotAfter.Format(time.DateOnly) }},
		{name: "Vouches for", value: func(a localCA) string { return strings.Join(a.Names(), " ") }},
	},
}

func (a localCA) fingerprint() string {
	return strings.ReplaceAll(fmt.Sprintf("% X", sha256.Sum256(a.Certificate().Raw)), " ", ":")
}

func (c *cli) caCommand() *cobra.Command {
	status := &cobra.Command{
		Use: "status", Short: "Show the local certificate authority", Args: positional(),
		RunE: c.withCA(func(a localCA) error { return one(c, localCAs, a) }),
	}
	export := &cobra.Command{
		Use: "export", Short: "Print its certificate, as PEM", Args: positional(),
		RunE: c.withCA(func(a localCA) error {
			_, err := c.stdout.Write(a.PEM())
			return err
		}),
	}
	return noun("ca", "The local certificate authority: HTTPS without a public one", status, export)
}

// withCA runs a command over the authority of the data directory, which it makes
// where there is none.
func (c *cli) withCA(do func(a localCA) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		config, _, err := c.loadConfig(cmd.Flags())
		if err != nil {
			return err
		}
		if err := makeDataDir(config.Data); err != nil {
			return err
		}
		a, err := ca.Open(ca.Config{Dir: config.Data, Hosts: config.certified()})
		if err != nil {
			return err
		}
		return do(localCA{a, filepath.Join(config.Data, ca.CertFile)})
	}
}
