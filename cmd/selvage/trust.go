package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/ca"
	"github.com/selvage/selvage/cmd/selvage/internal/truststore"
	"github.com/selvage/selvage/internal/suggest"
)

var trustPlaces = view[truststore.Place]{
	id: func(p truststore.Place) string { return p.Path },
	json: func(p truststore.Place) any {
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
	facts: []fact[truststore.Place]{
		{name: "Store", value: func(p truststore.Place) string { return string(p.Kind) }},
		{name: "State", value: func(p truststore.Place) string { return string(p.State) }},
		{name: "Path", value: func(p truststore.Place) string { return p.Path }},
	},
}

func (c *cli) installCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "install", Short: "Have this machine's programs and browsers trust it", Args: positional(),
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

func (c *cli) uninstallCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "uninstall", Short: "Take back what install did", Args: positional(),
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
func (c *cli) openTrust(cmd *cobra.Command, config truststore.Config) (*truststore.Stores, error) {
	config.Name, config.Getenv = ca.Name(), c.getenv
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
				return nil, usagef("--store: there is no store %q%s", name,
					suggest.MeantOr(name, known, "there are "+strings.Join(known, ", ")))
			}
			config.Kinds = append(config.Kinds, truststore.Kind(name))
		}
	}
	return truststore.Open(config)
}

// changeTrust changes the stores, prints how they are then, and tells of each
// that could not be changed.
func (c *cli) changeTrust(cmd *cobra.Command, cert *x509.Certificate, change func(*truststore.Stores, context.Context) []truststore.Place) error {
	stores, err := c.openTrust(cmd, truststore.Config{Cert: cert})
	if err != nil {
		return err
	}
	places := change(stores, cmd.Context())
	return errors.Join(list(c, trustPlaces, places), c.troubles(cmd, places))
}

// troubles returns a sentence for each store with which something is wrong.
func (c *cli) troubles(cmd *cobra.Command, places []truststore.Place) error {
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
func (c *cli) withSudo(cmd *cobra.Command) string {
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
