package command

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/ca"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/cmd/selvage/internal/truststore"
	"github.com/selvage/selvage/internal/suggest"
)

// A localCA is the certificate authority of a data directory.
type localCA struct {
	*ca.Authority
	file   string
	places []truststore.Place // trust stores on this machine
}

var caView = cli.View[localCA]{
	ID: localCA.fingerprint,
	JSON: func(a localCA) any {
		return struct {
			File        string   `json:"file"`
			Subject     string   `json:"subject"`
			Fingerprint string   `json:"sha256"`
			ExpiresAt   cli.Time `json:"expires_at"`
			Names       []string `json:"names"`
			Stores      []any    `json:"stores"`
		}{
			File:        a.file,
			Subject:     a.Certificate().Subject.CommonName,
			Fingerprint: a.fingerprint(),
			ExpiresAt:   cli.UTC(a.Certificate().NotAfter),
			Names:       a.Names(),
			Stores:      a.stores(),
		}
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
	all := make([]any, 0, len(a.places))
	for _, p := range a.places {
		all = append(all, placeView.JSON(p))
	}
	return all
}

// trust returns a line for each store, which says whether the store trusts the authority.
func (a localCA) trust() string {
	var lines []string
	for _, p := range a.places {
		lines = append(lines, fmt.Sprintf("%-8s  %s: %s", p.Kind, p.Path, p.State))
	}
	return strings.Join(lines, "\n")
}

var placeView = cli.View[truststore.Place]{
	ID: func(p truststore.Place) string { return p.Path },
	JSON: func(p truststore.Place) any {
		object := struct {
			Store truststore.Kind  `json:"store"`
			Path  string           `json:"path"`
			State truststore.State `json:"state"`
			Error string           `json:"error,omitempty"`
		}{Store: p.Kind, Path: p.Path, State: p.State, Error: ""}
		if p.Err != nil {
			object.Error = p.Err.Error()
		}
		return object
	},
	Facts: []cli.Fact[truststore.Place]{
		{Name: "Store", Value: func(p truststore.Place) string { return string(p.Kind) }},
		{Name: "State", Value: func(p truststore.Place) string { return string(p.State) }},
		{Name: "Path", Value: func(p truststore.Place) string { return p.Path }},
	},
}

// caCommands builds the commands for the local certificate authority.
type caCommands struct{ *commands }

func (c caCommands) command() *cobra.Command {
	install := cli.Command("install", "Make this machine's programs and browsers trust it", c.withCA(
		func(cmd *cobra.Command, a localCA) error {
			return c.changeTrust(cmd, a.Certificate(), (*truststore.Stores).Install)
		}))
	install.Long = `Add the certificate to Debian's store, which curl and most programs read (this needs
root), and to the stores of Chromium and of each Firefox profile (these need certutil, from
libnss3-tools). Stores that already have it are left unchanged; an older authority of the same name is
replaced. Restart browsers afterwards.`
	uninstall := cli.Command("uninstall", "Undo what install did", c.uninstallCA)
	uninstall.Long = `Remove the authority, and any other of the same name, from the stores.`
	for _, cmd := range []*cobra.Command{install, uninstall} {
		cmd.Flags().StringSlice("store", nil,
			"a `store` to change: system, chromium or firefox; repeatable (default all that exist)")
	}

	status := cli.Command("status", "Show the local certificate authority and where it is trusted", c.withCA(c.showCA))
	export := cli.Command("export", "Print its certificate as PEM", c.withCA(
		func(_ *cobra.Command, a localCA) error {
			_, err := c.Stdout.Write(a.PEM())
			return err
		}))
	return cli.Noun("ca", "The local certificate authority: HTTPS without a public one", install, uninstall,
		status, export)
}

// showCA prints the authority and the stores of this machine that trust it.
func (c caCommands) showCA(cmd *cobra.Command, a localCA) error {
	stores, err := c.openTrust(cmd, a.Certificate())
	if err != nil {
		return err
	}
	a.places = stores.Status(cmd.Context())
	return errors.Join(cli.Show(c.Env, caView, a), c.storeErrors(cmd, a.places))
}

func (c caCommands) uninstallCA(cmd *cobra.Command, _ []string) error {
	conf, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}
	cert, err := ca.Read(conf.Data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return c.changeTrust(cmd, cert, (*truststore.Stores).Remove) // Remove finds the authority by its name
}

// withCA returns a runner for a command that needs the authority of the data directory. It creates
// the authority if needed.
func (c caCommands) withCA(do func(*cobra.Command, localCA) error) runner {
	return func(cmd *cobra.Command, _ []string) error {
		conf, _, err := c.loadConfig(cmd.Flags())
		if err != nil {
			return err
		}

		_, err = ca.Read(conf.Data)
		if errors.Is(err, fs.ErrNotExist) && c.calledBySudo() {
			return fmt.Errorf("no certificate authority in %s, and root would own a new one: "+
				"run `selvage ca status` without sudo first", conf.Data)
		}

		err = datadir.Make(conf.Data)
		if err != nil {
			return err
		}
		a, err := ca.Open(ca.Config{Dir: conf.Data, Hosts: conf.CertifiedHosts()})
		if err != nil {
			return err
		}
		return do(cmd, localCA{Authority: a, file: filepath.Join(conf.Data, ca.CertFile)})
	}
}

// calledBySudo reports whether another user runs the command as root through sudo.
func (c caCommands) calledBySudo() bool {
	id := c.Getenv("SUDO_UID")
	return os.Geteuid() == 0 && id != "" && id != "0"
}

// openTrust opens the trust stores that --store names. cert may be nil.
func (c caCommands) openTrust(cmd *cobra.Command, cert *x509.Certificate) (*truststore.Stores, error) {
	conf := truststore.Config{Cert: cert, Name: ca.Name(), Getenv: c.Getenv}
	if cert != nil {
		conf.Name = cert.Subject.CommonName
	}

	if names := cli.Texts(cmd, "store"); names != nil {
		for _, name := range *names {
			if !slices.Contains(truststore.Kinds, truststore.Kind(name)) {
				known := []string{"system", "chromium", "firefox"}
				hint := suggest.MeantOr(name, known, "use "+strings.Join(known, ", "))
				return nil, cli.Usagef("--store: unknown store %q%s", name, hint)
			}
			conf.Kinds = append(conf.Kinds, truststore.Kind(name))
		}
	}
	return truststore.Open(conf)
}

// changeTrust changes the trust stores and then prints their state. It returns an error if a store
// could not be changed.
func (c caCommands) changeTrust(
	cmd *cobra.Command, cert *x509.Certificate,
	change func(*truststore.Stores, context.Context) []truststore.Place,
) error {
	stores, err := c.openTrust(cmd, cert)
	if err != nil {
		return err
	}
	places := change(stores, cmd.Context())
	return errors.Join(cli.List(c.Env, placeView, places), c.storeErrors(cmd, places))
}

// storeErrors returns the errors of the trust stores. If a store needs root, it names the command to run.
func (c caCommands) storeErrors(cmd *cobra.Command, places []truststore.Place) error {
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

// withSudo returns the command line that changes the system store as root.
func (c caCommands) withSudo(cmd *cobra.Command) string {
	program, err := os.Executable()
	if err != nil {
		program = "selvage"
	}
	line := fmt.Sprintf("sudo %s ca %s --store system", program, cmd.Name())
	conf, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return line
	}
	if dir, err := filepath.Abs(conf.Data); err == nil {
		line += " --data " + dir
	}
	return line
}
