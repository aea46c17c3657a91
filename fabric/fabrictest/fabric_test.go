// Package fabrictest tests package fabric with the store; see docs/testing.md.
package fabrictest

import (
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/store/storetest"
)

// newFabric returns a fabric on real storage, and a fabric with another issuer on the same storage.
func newFabric(t *testing.T) (ours, theirs *fabric.Fabric) {
	t.Helper()
	dir := storetest.Dir(t)
	rows := storetest.Open(t, dir, nil)
	revoked := revocation.New(rows, nil)
	if err := revoked.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}

	config := fabric.Config{
		Stores:      rows.Fabric(),
		Ring:        storetest.Ring(t, dir, rows, nil),
		Passwords:   password.Weak(1),
		Revocations: revoked,
		Host:        "h",
		Issuer:      "http://ours/",
	}
	ours = fabric.New(config)
	config.Issuer = "http://theirs/"
	return ours, fabric.New(config)
}

// projectOf returns a fabric with one project.
func projectOf(t *testing.T) (*fabric.Fabric, fabric.Project) {
	t.Helper()
	f, _ := newFabric(t)
	p, err := f.Projects.Create(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	return f, p
}
