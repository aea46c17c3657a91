package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/ca"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/cmd/selvage/internal/truststore"
)

// A localCA is the certificate authority as it is printed.
type localCA struct {
	*ca.Authority
	file   string
	places []truststore.Place // where it may be trusted
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
			Stores      []any    `json:"stores"`
		}{a.file, a.Certificate().Subject.CommonName, a.fingerprint(), iso(a.Certificate().NotAfter),
			a.Names(), a.stores()}
	},
	facts: []fact[localCA]{
		{name: "File", value: func(a localCA) string { return a.file }},
		{name: "Subject", value: func(a localCA) string { return a.Certificate().Subject.CommonName }},
		{name: "SHA-256", value: localCA.fingerprint},
		{name: "Expires", value: func(a localCA) string { return a.Certificate().NotAfter.Format(time.DateOnly) }},
		{name: "Vouches for", value: func(a localCA) string { return strings.Join(a.Names(), " ") }},
		{name: "Trust", value: localCA.trust},
	},
}

func (a localCA) fingerprint() string {
	return strings.ReplaceAll(fmt.Sprintf("% X", sha256.Sum256(a.Certificate().Raw)), " ", ":")
}

func (a localCA) stores() []any {
	told := make([]any, 0, len(a.places))
	for _, p := range a.places {
		told = append(told, trustPlaces.json(p))
	}
	return told
}

// trust returns a line for each store.
func (a localCA) trust() string {
	var lines []string
	for _, p := range a.places {
		lines = append(lines, fmt.Sprintf("%-8s  %s: %s", p.Kind, p.Path, p.State))
	}
	return strings.Join(lines, "\n")
}

func (c *cli) caCommand() *cobra.Command {
	status := &cobra.Command{
		Use: "status", Short: "Show the local certificate authority, and where it is trusted", Args: positional(),
		RunE: c.withCA(c.showCA),
	}
	export := &cobra.Command{
		Use: "export", Short: "Print its certificate, as PEM", Args: positional(),
		RunE: c.withCA(func(_ *cobra.Command, a localCA) error {
			_, err := c.stdout.Write(a.PEM())
			return err
		}),
	}
	return noun("ca", "The local certificate authority: HTTPS without a public one", c.installCommand(),
		c.uninstallCommand(), status, export)
}

// showCA prints the authority and what the stores of this machine make of it.
func (c *cli) showCA(cmd *cobra.Command, a localCA) error {
	stores, err := c.openTrust(cmd, truststore.Config{Cert: a.Certificate()})
	if err != nil {
		return err
	}
	a.places = stores.Status(cmd.Context())
	return errors.Join(one(c, localCAs, a), c.troubles(cmd, a.places))
}

// withCA runs a command over the authority of the data directory, which it makes
// where there is none.
func (c *cli) withCA(do func(*cobra.Command, localCA) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		conf, _, err := c.loadConfig(cmd.Flags())
		if err != nil {
			return err
		}
		if _, err := ca.Read(conf.Data); errors.Is(err, fs.ErrNotExist) && c.calledBySudo() {
			return fmt.Errorf("there is no certificate authority in %s, and root would own what is made there: run `selvage ca status` without sudo first", conf.Data)
		}
		if err := datadir.Make(conf.Data); err != nil {
			return err
		}
		a, err := ca.Open(ca.Config{Dir: conf.Data, Hosts: conf.Certified()})
		if err != nil {
			return err
		}
		return do(cmd, localCA{Authority: a, file: filepath.Join(conf.Data, ca.CertFile)})
	}
}

// calledBySudo reports whether this is root at the call of somebody else.
func (c *cli) calledBySudo() bool {
	id := c.getenv("SUDO_UID")
	return os.Geteuid() == 0 && id != "" && id != "0"
}
