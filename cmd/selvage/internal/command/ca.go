package command

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/ca"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/cmd/selvage/internal/truststore"
	"github.com/selvage/selvage/internal/suggest"
	"github.com/spf13/cobra"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A localCA is the certificate authority as it is printed.
type localCA struct {
	*ca.Authority
	file   string
	places []truststore.Place // where it may be trusted
}

var localCAs = cli.View[localCA]{
	ID: localCA.fingerprint,
	JSON: func(a localCA) any {
		return struct {
			File        string   `json:"file"`
			Subject     string   `json:"subject"`
			Fingerprint string   `json:"sha256"`
			ExpiresAt   cli.Time `json:"expires_at"`
			Names       []string `json:"names"`
			Stores      []any    `json:"stores"`
		}{a.file, a.Certificate().Subject.CommonName, a.fingerprint(), cli.UTC(a.Certificate().NotAfter),
			a.Names(), a.stores()}
	},
	Facts: []cli.Fact[localCA]{
		{Name: "File", Value: func(a localCA) string { return a.file }},
		{Name: "Subject", Value: func(a localCA) string { return a.Certificate().Subject.CommonName }},
		{Name: "SHA-256", Value: localCA.fingerprint},
		{Name: "Expires", Value: func(a localCA) string { return a.Certificate().NotAfter.Format(time.DateOnly) }},
		{Name: "Vouches for", Value: func(a localCA) string { return strings.Join(a.Names(), " ") }},
		{Name: "Trust", Value: localCA.trust},
	},
}

func (a localCA) fingerprint() string {
	return strings.ReplaceAll(fmt.Sprintf("% X", sha256.Sum256(a.Certificate().Raw)), " ", ":")
}

func (a localCA) stores() []any {
	told := make([]any, 0, len(a.places))
	for _, p := range a.places {
		told = append(told, trustPlaces.JSON(p))
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

func (c *commands) caCommand() *cobra.Command {
	status := &cobra.Command{
		Use: "status", Short: "Show the local certificate authority, and where it is trusted", Args: cli.NoArguments,
		RunE: c.withCA(c.showCA),
	}
	export := &cobra.Command{
		Use: "export", Short: "Print its certificate, as PEM", Args: cli.NoArguments,
		RunE: c.withCA(func(_ *cobra.Command, a localCA) error {
			_, err := c.Stdout.Write(a.PEM())
			return err
		}),
	}
	return cli.Noun("ca", "The local certificate authority: HTTPS without a public one", c.installCommand(),
		c.uninstallCommand(), status, export)
}

// showCA prints the authority and what the stores of this machine make of it.
func (c *commands) showCA(cmd *cobra.Command, a localCA) error {
	stores, err := c.openTrust(cmd, truststore.Config{Cert: a.Certificate()})
	if err != nil {
		return err
	}
	a.places = stores.Status(cmd.Context())
	return errors.Join(cli.Show(c.Env, localCAs, a), c.troubles(cmd, a.places))
}

// withCA runs a command over the authority of the data directory, which it makes
// where there is none.
func (c *commands) withCA(do func(*cobra.Command, localCA) error) func(*cobra.Command, []string) error {
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
		a, err := ca.Open(ca.Config{Dir: conf.Data, Hosts: conf.CertifiedHosts()})
		if err != nil {
			return err
		}
		return do(cmd, localCA{Authority: a, file: filepath.Join(conf.Data, ca.CertFile)})
	}
}

// calledBySudo reports whether this is root at the call of somebody else.
func (c *commands) calledBySudo() bool {
	id := c.Getenv("SUDO_UID")
	return os.Geteuid() == 0 && id != "" && id != "0"
}

var trustPlaces = cli.View[truststore.Place]{
	ID: func(p truststore.Place) string { return p.Path },
	JSON: func(p truststore.Place) any {
		told := struct {
			Store truststore.Kind  `json:"store"`
			Path  string           `json:"path"`
			State truststore.State `json:"state"`
			Error string           `json:"error,omitempty"`
		}{p.Kind, p.Path, p.State, ""}
		if p.Err != nil {
			told.Error = p.Err.Error()
		}
		return told
	},
	Facts: []cli.Fact[truststore.Place]{
		{Name: "Store", Value: func(p truststore.Place) string { return string(p.Kind) }},
		{Name: "State", Value: func(p truststore.Place) string { return string(p.State) }},
		{Name: "Path", Value: func(p truststore.Place) string { return p.Path }},
	},
}

func (c *commands) installCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "install", Short: "Have this machine's programs and browsers trust it", Args: cli.NoArguments,
		Long: "Puts the certificate into Debian's store, which curl and most programs read (this needs root), into\n" +
			"Chromium's and into that of each Firefox profile (these need certutil, of libnss3-tools). What is there\n" +
			"already is left alone; an older authority of the same name is replaced. Browsers notice when they start.",
	}
	cmd.RunE = c.withCA(func(cmd *cobra.Command, a localCA) error {
		return c.changeTrust(cmd, a.Certificate(), (*truststore.Stores).Install)
	})
	addStoreFlag(cmd)
	return cmd
}

func (c *commands) uninstallCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "uninstall", Short: "Take back what install did", Args: cli.NoArguments,
		Long: "Takes the authority, and any other of the same name, out of the stores.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			conf, _, err := c.loadConfig(cmd.Flags())
			if err != nil {
				return err
			}
			cert, err := ca.Read(conf.Data)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return c.changeTrust(cmd, cert, (*truststore.Stores).Remove) // without it, by the name
		},
	}
	addStoreFlag(cmd)
	return cmd
}

func addStoreFlag(cmd *cobra.Command) {
	cmd.Flags().StringSlice("store", nil,
		"a `store` to change: system, chromium or firefox; any number (default all that are there)")
}

// openTrust finds the stores that are asked for. cert may be nil.
func (c *commands) openTrust(cmd *cobra.Command, config truststore.Config) (*truststore.Stores, error) {
	config.Name, config.Getenv = ca.Name(), c.Getenv
	if config.Cert != nil {
		config.Name = config.Cert.Subject.CommonName
	}
	if f := cmd.Flags().Lookup("store"); f != nil {
		names, err := cmd.Flags().GetStringSlice("store")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if !slices.Contains(truststore.Kinds, truststore.Kind(name)) {
				known := []string{"system", "chromium", "firefox"}
				return nil, cli.Usagef("--store: there is no store %q%s", name,
					suggest.MeantOr(name, known, "there are "+strings.Join(known, ", ")))
			}
			config.Kinds = append(config.Kinds, truststore.Kind(name))
		}
	}
	return truststore.Open(config)
}

// changeTrust changes the stores, prints how they are then, and tells of each
// that could not be changed.
func (c *commands) changeTrust(cmd *cobra.Command, cert *x509.Certificate, change func(*truststore.Stores, context.Context) []truststore.Place) error {
	stores, err := c.openTrust(cmd, truststore.Config{Cert: cert})
	if err != nil {
		return err
	}
	places := change(stores, cmd.Context())
	return errors.Join(cli.List(c.Env, trustPlaces, places), c.troubles(cmd, places))
}

// troubles returns a sentence for each store with which something is wrong.
func (c *commands) troubles(cmd *cobra.Command, places []truststore.Place) error {
	var errs []error
	for _, p := range places {
		switch {
		case errors.Is(p.Err, truststore.ErrNotRoot):
			errs = append(errs, fmt.Errorf("%s: %w; run `%s`", p.Kind, p.Err, c.withSudo(cmd)))
		case p.Err != nil && p.Kind == "":
			errs = append(errs, p.Err)
		case p.Err != nil && p.Path == "":
			errs = append(errs, fmt.Errorf("%s: %w", p.Kind, p.Err))
		case p.Err != nil:
			errs = append(errs, fmt.Errorf("%s: %s: %w", p.Kind, p.Path, p.Err))
		}
	}
	return errors.Join(errs...)
}

// withSudo returns the command line that does the rest as root.
func (c *commands) withSudo(cmd *cobra.Command) string {
	program, err := os.Executable()
	if err != nil {
		program = "selvage"
	}
	line := fmt.Sprintf("sudo %s ca %s --store system", program, cmd.Name())
	if conf, _, err := c.loadConfig(cmd.Flags()); err == nil {
		if dir, err := filepath.Abs(conf.Data); err == nil {
			line += " --data " + dir
		}
	}
	return line
}
