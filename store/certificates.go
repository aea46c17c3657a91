package store

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
)

// Certificates holds TLS certificates, and the claims of nodes that are about to obtain one.
type Certificates struct{ *core }

// FindCertificate returns the sealed value that is stored under name.
func (s *Certificates) FindCertificate(ctx context.Context, name string) (sealed string, err error) {
	err = s.read().Row(ctx, `SELECT sealed FROM certificates WHERE name = $1`, name).Scan(&sealed)
	return sealed, checkRow(err, "certificate")
}

// PutCertificate stores a sealed value under name.
func (s *Certificates) PutCertificate(ctx context.Context, name, sealed string) error {
	return s.once(ctx, audit.Of("certificate.written", "", "certificate", name), func(t tx) error {
		_, err := t.Exec(ctx, `INSERT INTO certificates (name, sealed, updated) VALUES ($1, $2, $3)
			ON CONFLICT (name) DO UPDATE SET sealed = $2, updated = $3`, name, sealed, micros(s.now()))
		if err != nil {
			return fmt.Errorf("writing certificate: %w", err)
		}
		return nil
	})
}

// DeleteCertificate deletes the value under name, if there is one.
func (s *Certificates) DeleteCertificate(ctx context.Context, name string) error {
	return s.once(ctx, audit.Of("certificate.deleted", "", "certificate", name), func(t tx) error {
		if _, err := t.Exec(ctx, `DELETE FROM certificates WHERE name = $1`, name); err != nil {
			return fmt.Errorf("deleting certificate: %w", err)
		}
		return nil
	})
}

// ClaimCertificate reserves a name until the given time, so that only the caller obtains the
// certificate. A [problem.Conflict] means that another node has a claim that has not expired.
func (s *Certificates) ClaimCertificate(ctx context.Context, name string, until time.Time) error {
	return s.once(ctx, audit.None("a lease"), func(t tx) error {
		res, err := t.Exec(ctx, `INSERT INTO certificates (name, sealed, updated) VALUES ($1, '', $2)
			ON CONFLICT (name) DO UPDATE SET updated = $2 WHERE certificates.updated < $3`,
			name, micros(until), micros(s.now()))
		return requireRowOr(problem.New(problem.Conflict, "certificate_claimed", "another node is requesting %s", name),
			res, err, "certificate")
	})
}

// ReleaseCertificate ends the claim that was made until the given time. It leaves any other claim
// unchanged.
func (s *Certificates) ReleaseCertificate(ctx context.Context, name string, until time.Time) error {
	return s.once(ctx, audit.None("a lease"), func(t tx) error {
		_, err := t.Exec(ctx, `DELETE FROM certificates WHERE name = $1 AND updated = $2`, name, micros(until))
		if err != nil {
			return fmt.Errorf("releasing certificate: %w", err)
		}
		return nil
	})
}
