// Package demo creates the demo project on the first start of a server, and serves the demo app at
// /demo. The project has a subscriber, clients, resources and recordings.
//
// IDs and secrets are random. The file first-run.txt in the data directory lists all of them,
// together with three curl commands to try.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/templates"
)

// These are the files of the demo in the data directory.
const (
	TextFile       = "first-run.txt" // the text that the first start printed
	appFile        = "demo.json"     // the app as JSON
	unfinishedFile = ".first-run"    // ID of the project while the demo is being created
)

// Path is the path of the demo app.
const Path = "/demo"

// Config holds the parts of a server that the demo needs.
type Config struct {
	Dir     string // the data directory
	Where   config.Where
	Allowed bool // whether the server may create and show a demo

	LoopbackMedia bool   // whether calls use loopback for media; Firefox sends no media to loopback
	SDK           string // file with the stock SDK; "" means that browsers load it from its vendor

	Fabric     *fabric.Fabric
	IDP        *idp.Provider
	Operators  *operator.Operators
	Recordings *recordings.Recordings

	SetupLink func(ctx context.Context) (string, error) // creates the link for the first operator, or returns ""
	Links     func() []templates.Link                   // returns links to the pages and APIs of the server
}

// A Demo manages the demo in a data directory.
type Demo struct {
	Config
	stock stockSDK
	app   *app // nil if there is no demo to show
}

// An app holds what later starts and resets need to know about a demo.
type app struct {
	ProjectID string `json:"project_id"`
	ClientID  string `json:"client_id"`            // client of the demo app's page
	Email     string `json:"email"`                // email address of the demo subscriber
	SetupLink string `json:"setup_link,omitempty"` // link for the first operator
}

// New returns the demo of a data directory. It creates nothing.
func New(c Config) (*Demo, error) {
	stock, err := readSDK(c.SDK)
	if err != nil {
		return nil, err
	}
	return &Demo{Config: c, stock: stock}, nil
}

// IsShown reports whether the page of the demo app is served.
func (d *Demo) IsShown() bool { return d.app != nil }

// Text returns the description of the demo that the server printed when it created the demo in dir.
func Text(dir string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(dir, TextFile))
	if err != nil {
		return nil, fmt.Errorf("reading the demo: %w", err)
	}
	return text, nil
}

// Exists reports whether there is a demo, even an unfinished one. If a reset is interrupted after it
// has deleted the demo, only appFile is left.
func (d *Demo) Exists() (bool, error) {
	for _, name := range []string{TextFile, unfinishedFile, appFile} {
		exists, err := d.has(name)
		if exists || err != nil {
			return exists, err
		}
	}
	return false, nil
}

// has reports whether the data directory contains the file with this name.
func (d *Demo) has(name string) (bool, error) {
	_, err := os.Stat(d.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for the demo: %w", err)
	}
	return true, nil
}

// FirstRun creates the demo if it is allowed, has not been created before, and no project exists.
// It returns the text to print, or "" if it created nothing.
func (d *Demo) FirstRun(ctx context.Context) (text string, err error) {
	if !d.Allowed {
		return "", nil
	}
	if exists, err := d.has(TextFile); exists || err != nil {
		return "", err
	}
	if err := d.deleteUnfinished(ctx); err != nil {
		return "", err
	}
	projects, err := d.Fabric.Projects.List(ctx, page.Query{Size: 1})
	if err != nil {
		return "", err
	}
	if len(projects.Items) > 0 {
		return "", nil
	}
	return d.create(ctx, d.SetupLink)
}

// Reset deletes the demo, creates a new one, and returns the text to print. It works with or
// without a running server. If it is interrupted, call it again.
func (d *Demo) Reset(ctx context.Context) (text string, err error) {
	old, err := d.readApp()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := d.deleteUnfinished(ctx); err != nil {
		return "", err
	}

	if err := d.deleteProject(ctx, old.ProjectID); err != nil {
		return "", fmt.Errorf("deleting the demo: %w", err)
	}
	if err := os.Remove(d.file(TextFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("deleting the demo: %w", err)
	}

	setupLink := func(ctx context.Context) (string, error) {
		return d.keepSetupLink(ctx, old.SetupLink)
	}
	return d.create(ctx, setupLink)
}

// create creates the demo with a setup link, and writes its files. It removes unfinishedFile last.
// If the file still exists at the next start, the creation was interrupted.
func (d *Demo) create(ctx context.Context, setupLink func(context.Context) (string, error)) (string, error) {
	s, err := d.seed(ctx)
	if err != nil {
		return "", fmt.Errorf("creating the demo: %w", err)
	}
	s.setup, err = setupLink(ctx)
	if err != nil {
		return "", err
	}

	d.app = &app{
		ProjectID: s.project.ID,
		ClientID:  s.spa.ID,
		Email:     s.subscriber.Email,
		SetupLink: s.setup,
	}
	encoded, err := json.Marshal(d.app)
	if err != nil {
		return "", fmt.Errorf("writing %s: %w", appFile, err)
	}
	if err := datadir.Replace(d.file(appFile), encoded, 0o600); err != nil {
		return "", err
	}

	text := d.describe(s)
	if err := datadir.Replace(d.file(TextFile), []byte(text), 0o600); err != nil {
		return "", err
	}
	return text, os.Remove(d.file(unfinishedFile))
}

// deleteUnfinished deletes the project of a demo whose creation was interrupted, if there is one.
func (d *Demo) deleteUnfinished(ctx context.Context) error {
	id, err := os.ReadFile(d.file(unfinishedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the usual case: no start was interrupted
	}
	if err != nil {
		return fmt.Errorf("looking for an unfinished demo: %w", err)
	}
	if err := d.deleteProject(ctx, string(id)); err != nil {
		return fmt.Errorf("removing an unfinished demo: %w", err)
	}
	return os.Remove(d.file(unfinishedFile))
}

// deleteProject deletes a project, if it still exists. It does nothing if id is "".
func (d *Demo) deleteProject(ctx context.Context, id string) error {
	err := d.Fabric.Projects.Delete(ctx, id)
	if errors.Is(err, problem.NotFound) {
		return nil
	}
	return err
}

// keepSetupLink returns the link for the first operator. If the link of the previous demo is still
// valid, it returns that link, because the token in it cannot be read from the store. It returns "" if
// an operator exists, or if a different link is valid.
func (d *Demo) keepSetupLink(ctx context.Context, previous string) (string, error) {
	operators, err := d.Operators.List(ctx, page.Query{Size: 1})
	if err != nil {
		return "", err
	}
	if len(operators.Items) > 0 {
		return "", nil
	}
	isValid, err := d.isValidLink(ctx, previous)
	if err != nil {
		return "", err
	}
	if isValid {
		return previous, nil
	}
	return d.SetupLink(ctx)
}

// isValidLink reports whether a link for the first operator can still be used. link may be "".
func (d *Demo) isValidLink(ctx context.Context, link string) (bool, error) {
	u, err := url.Parse(link)
	if err != nil {
		return false, nil // not a link that this program wrote
	}
	_, err = d.Operators.FindLink(ctx, u.Query().Get("token"))
	if errors.Is(err, problem.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// Open finds the demo that an earlier start created, so that its page can be shown. The server's
// address may have changed since then. Open therefore adds the current address to the redirect URIs
// of the demo's client.
func (d *Demo) Open(ctx context.Context) error {
	found, err := d.readApp()
	if errors.Is(err, fs.ErrNotExist) {
		d.app = nil
		return nil
	}
	if err != nil {
		return err
	}
	if !d.Allowed {
		d.app = nil
		return nil
	}

	client, err := d.IDP.Clients.Find(ctx, found.ClientID)
	if errors.Is(err, problem.NotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding the demo's client: %w", err)
	}
	d.app = &found
	return d.registerPage(ctx, client, d.Where.Public+Path)
}

// readApp reads appFile, which an earlier start or reset wrote.
func (d *Demo) readApp() (found app, err error) {
	text, err := os.ReadFile(d.file(appFile))
	if err != nil {
		return found, fmt.Errorf("reading the demo: %w", err)
	}
	if err := json.Unmarshal(text, &found); err != nil {
		return found, fmt.Errorf("reading %s: %w", appFile, err)
	}
	return found, nil
}

// registerPage adds page to the redirect URIs of a client, for logins and logouts.
func (d *Demo) registerPage(ctx context.Context, c idp.Client, page string) error {
	if slices.Contains(c.RedirectURIs, page) && slices.Contains(c.LogoutURIs, page) {
		return nil
	}
	err := d.IDP.Clients.Change(ctx, c.ID, func(c *idp.Client) {
		c.RedirectURIs = appendMissing(c.RedirectURIs, page)
		c.LogoutURIs = appendMissing(c.LogoutURIs, page)
	})
	if err != nil {
		return fmt.Errorf("registering %s with the demo's client: %w", page, err)
	}
	return nil
}

// appendMissing returns list with s appended, unless it contains s.
func appendMissing(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(slices.Clone(list), s)
}

func (d *Demo) file(name string) string { return filepath.Join(d.Dir, name) }
