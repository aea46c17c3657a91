package fabric

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// A SigningKey signs what a project's webhooks are sent. Receivers have it too, so it is
// stored sealed and shown to callers with the right to read it.
type SigningKey struct {
	ID        string
	ProjectID string
	Sealed    string
	Created   time.Time
	Starts    time.Time // when it starts signing; zero for a project's first key
}

// SigningKeys are the keys that a receiver must know: the one that signs and, after a
// rotation, the one that follows.
type SigningKeys struct {
	Current, Next             *SigningKey // Next is nil if no rotation is pending
	CurrentSecret, NextSecret string
}

// SigningKeys returns the signing keys of a project. It creates the first one.
func (ws *Webhooks) SigningKeys(ctx context.Context, projectID string) (SigningKeys, error) {
	projectID, ok := canonical(projectID)
	if !ok {
		return SigningKeys{}, problem.NoSuch("project")
	}
	all, err := ws.store.ListSigningKeys(ctx, projectID)
	if err == nil && len(all) == 0 {
		all, err = ws.firstSigningKey(ctx, projectID)
	}
	if err != nil {
		return SigningKeys{}, err
	}
	return ws.openSigningKeys(all)
}

// firstSigningKey creates the first key of a project. Of any number of concurrent callers
// one creates it.
func (ws *Webhooks) firstSigningKey(ctx context.Context, projectID string) ([]SigningKey, error) {
	k, err := ws.newSigningKey(projectID, time.Time{})
	if err != nil {
		return nil, err
	}
	if err := ws.store.CreateSigningKey(ctx, k); err != nil && !errors.Is(err, problem.Conflict) {
		return nil, err
	}
	return ws.store.ListSigningKeys(ctx, projectID)
}

func (ws *Webhooks) newSigningKey(projectID string, starts time.Time) (k SigningKey, err error) {
	var random [32]byte
	rand.Read(random[:])
	k = SigningKey{ID: newID(), ProjectID: projectID, Created: ws.now(), Starts: starts}
	k.Sealed, err = ws.c.Ring.SealSecret(signingName(k.ID), []byte("PSK"+hex.EncodeToString(random[:])))
	return k, err
}

func signingName(id string) string { return "signing:" + id }

// openSigningKeys opens the current and the next of the keys, which are ordered by their
// start.
func (ws *Webhooks) openSigningKeys(all []SigningKey) (s SigningKeys, err error) {
	now := ws.now()
	for i, k := range all {
		if k.Starts.After(now) {
			s.Next = &all[i]
			break
		}
		s.Current = &all[i]
	}

	if s.Current == nil {
		return s, errors.New("no signing key has begun")
	}
	if s.CurrentSecret, err = ws.openSigningKey(*s.Current); err == nil && s.Next != nil {
		s.NextSecret, err = ws.openSigningKey(*s.Next)
	}

	return s, err
}

func (ws *Webhooks) openSigningKey(k SigningKey) (string, error) {
	secret, err := ws.c.Ring.OpenSecret(signingName(k.ID), k.Sealed)
	return string(secret), err
}

// RotateSigningKey creates the key that signs after an overlap. An overlap of 0 starts it
// at once, for a key that has leaked. A next key must have started already, or it is
// replaced now.
func (ws *Webhooks) RotateSigningKey(
	ctx context.Context, projectID string, overlap time.Duration,
) (SigningKeys, error) {
	if overlap < 0 || overlap > MaxOverlap {
		return SigningKeys{}, problem.BadParam(
			"overlap", "overlap must be from 0 to %d seconds", int(MaxOverlap.Seconds()))
	}
	old, err := ws.SigningKeys(ctx, projectID)
	if err != nil {
		return old, err
	}
	if old.Next != nil && overlap > 0 {
		return old, problem.BadParam("overlap",
			"a new key takes over at %s; overlap must be 0 to make another now", moment(old.Next.Starts))
	}
	now := ws.now()
	k, err := ws.newSigningKey(old.Current.ProjectID, now.Add(overlap))
	if err != nil {
		return old, err
	}
	if err := ws.store.RotateSigningKey(ctx, k, old.Current.Starts, overlap == 0); err != nil {
		return old, fmt.Errorf("rotating signing key: %w", err)
	}
	ws.caches.signing.Clear()
	return ws.SigningKeys(ctx, projectID)
}

// SigningKey returns the secret that signs a project's deliveries, as of the last 300 ms.
func (ws *Webhooks) SigningKey(ctx context.Context, projectID string) (string, error) {
	return ws.caches.signing.Load(projectID, func() (string, error) {
		k, err := ws.SigningKeys(ctx, projectID)
		return k.CurrentSecret, err
	})
}
