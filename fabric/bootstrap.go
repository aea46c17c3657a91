package fabric

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/selvage/selvage/internal/problem"
)

// keySecret matches the secrets of API keys.
var keySecret = regexp.MustCompile(`^PT[0-9a-f]{64}$`)

// CheckSecret reports a secret that is not as those of API keys are: who brings one
// along must have drawn it as we do.
func CheckSecret(param, secret string) error {
	if !keySecret.MatchString(secret) {
		return problem.BadParam(param, "%s must be PT and 64 hexadecimal digits in small letters", param)
	}
	return nil
}

// Adopt makes a key with a secret that was brought along, unless a key has it.
func (ks *APIKeys) Adopt(ctx context.Context, projectID string, in APIKeyInput, secret string) error {
	if err := errors.Join(CheckSecret("secret", secret), ks.Check(in, true)); err != nil {
		return err
	}
	if _, err := ks.store.FindAPIKeyByHash(ctx, hashKey(secret)); !errors.Is(err, problem.NotFound) {
		return err
	}
	k := APIKey{ID: newID(), ProjectID: projectID, Created: ks.now(), Scopes: distinct(in.Scopes),
		Prefix: secret[:8], Hash: hashKey(secret)}
	if in.Name != nil {
		k.Name = *in.Name
	}
	if err := ks.store.CreateAPIKey(ctx, k); err != nil {
		return fmt.Errorf("creating API key: %w", err)
	}
	return nil
}
