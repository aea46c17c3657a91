package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/certs"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
)

// secretColumns returns the database columns with secrets that [keys.Ring.SealSecret] has sealed.
// The key ring is not one of them, because it is sealed in a different way.
func secretColumns() []store.SecretColumn {
	byID := func(table, column string, name func(id string) string) store.SecretColumn {
		return store.SecretColumn{
			Table:  table,
			Column: column,
			Key:    []string{"id"},
			Name:   func(key []string) string { return name(key[0]) },
		}
	}

	certificates := byID("certificates", "sealed", certs.SecretName)
	certificates.Key = []string{"name"}
	return []store.SecretColumn{
		certificates,
		byID("devices", "sealed", fabric.DeviceSecretName),
		byID("grants", "seed", idp.SeedName),
		byID("resources", "secrets", fabric.ResourceSecretName),
		byID("signing_keys", "sealed", fabric.SigningKeySecretName),
		byID("sip_addresses", "secrets", fabric.ResourceSecretName),
		byID("sip_credentials", "secrets", fabric.ResourceSecretName),
		{
			Table:  "totps",
			Column: "sealed",
			Key:    []string{"owner_id", "owner_kind"},
			Name: func(key []string) string {
				return factor.TOTPSecretName(factor.Owner{Kind: factor.Kind(key[1]), ID: key[0]})
			},
		},
		byID("upstreams", "secret", idp.UpstreamSecretName),
	}
}

// ReplaceMaster makes next the master key. leaked means that others may know the earlier keys.
// Running servers that have the new key start to use it without a restart.
func (a *App) ReplaceMaster(ctx context.Context, next []byte, leaked bool) error {
	p, err := a.Ring.Replace(ctx, next, leaked)
	if err != nil {
		return err
	}

	m, err := keys.FindMasters(ctx, prepared{p.Masters}, next)
	if err != nil {
		return err
	}

	chains, err := audit.NewKey(m.Newest(), m.Earlier()...)
	if err != nil {
		return err
	}

	if err := a.Store.ReplaceMaster(ctx, p, chains); err != nil {
		return fmt.Errorf("replacing the master key: %w", err)
	}
	return a.Ring.Sync(ctx)
}

// prepared holds the master keys of a replacement that has not been stored yet.
type prepared struct{ records []keys.MasterRecord }

func (p prepared) MasterKeys(context.Context) ([]keys.MasterRecord, error) { return p.records, nil }

// Reseal seals all secrets with the newest master key, and returns how many secrets it changed. It calls
// progress with the name of each table that is done.
func (a *App) Reseal(ctx context.Context, progress func(table string)) (resealed int, err error) {
	var errs []error
	for _, column := range secretColumns() {
		n, err := a.Store.Reseal(ctx, column, a.Ring.Reseal)
		resealed += n // some may have been changed before an error
		errs = append(errs, err)
		progress(column.Table)
	}
	return resealed, errors.Join(errs...)
}

// sealedUntil is how long after a replacement a process may still seal with the previous master key.
const sealedUntil = time.Minute

// finishResealing seals the remaining secrets with the newest master key. It does nothing while a
// process may still use the previous master key, or if all secrets have been resealed.
func (a *App) finishResealing(ctx context.Context, log *slog.Logger) error {
	records, err := a.Store.MasterKeys(ctx)
	if err != nil {
		return err
	}
	if len(records) < 2 {
		return nil
	}

	newest, previous := records[len(records)-1], records[len(records)-2]
	safe := previous.Replaced.Add(sealedUntil)
	if newest.Resealed.After(safe) || time.Now().Before(safe) {
		return nil
	}

	began := time.Now()
	n, err := a.Reseal(ctx, func(string) {})
	if err != nil {
		return fmt.Errorf("sealing secrets with the new master key: %w", err)
	}
	log.Info("all secrets are sealed with the new master key", "changed", n)
	return a.Store.MarkResealed(ctx, newest.Generation, began)
}
