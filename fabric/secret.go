package fabric

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/selvage/selvage/fabric/kinds"
)

// sealSecrets removes the secret members, such as a SIP password, from values. It returns them
// sealed for the resource with this id. sealed is the result of an earlier call, or "". Secrets that
// are not in values keep their earlier values.
func (c *core) sealSecrets(k *kinds.Kind, values kinds.Values, id, sealed string) (string, error) {
	sent := make(kinds.Values)
	secrets := 0
	for _, field := range k.Fields {
		if !field.WriteOnly {
			continue
		}
		secrets++
		if raw, ok := values[field.Name]; ok {
			sent[field.Name] = raw
			delete(values, field.Name)
		}
	}
	if len(sent) == 0 {
		return sealed, nil
	}

	all := make(kinds.Values)
	keepsSome := len(sent) < secrets
	if sealed != "" && keepsSome { // if all are replaced, the earlier ones need not be opened
		var err error
		if all, err = c.openSecrets(id, sealed); err != nil {
			return "", err
		}
	}
	maps.Copy(all, sent)

	raw, err := json.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("writing secrets: %w", err)
	}
	return c.c.Ring.SealSecret(ResourceSecretName(id), raw)
}

// openSecrets returns the secret members that sealSecrets has sealed for the resource with this id.
func (c *core) openSecrets(id, sealed string) (all kinds.Values, err error) {
	raw, err := c.c.Ring.OpenSecret(ResourceSecretName(id), sealed)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("reading secrets: %w", err)
	}
	return all, nil
}

// ResourceSecretName returns the name to which the sealed secrets of a resource are bound. They
// cannot be opened for another resource.
func ResourceSecretName(id string) string { return "resource:" + id }
