package fabric

import (
	"encoding/json"
	"fmt"

	"github.com/selvage/selvage/fabric/kinds"
)

// sealSecrets removes secret members from v and returns them sealed to id, merged with
// previously sealed members that were not sent.
func (c *core) sealSecrets(k *kinds.Kind, v kinds.Values, id, sealed string) (string, error) {
	sent := make(kinds.Values)
	for _, field := range k.Fields {
		if raw, ok := v[field.Name]; ok && field.WriteOnly {
			sent[field.Name] = raw
			delete(v, field.Name)
		}
	}

	if len(sent) == 0 {
		return sealed, nil
	}

	all := make(kinds.Values)
	if sealed != "" {
		raw, err := c.c.Ring.OpenSecret(secretName(id), sealed)
		if err != nil {
			return "", err
		}
		if err := json.Unmarshal(raw, &all); err != nil {
			return "", fmt.Errorf("reading secrets: %w", err)
		}
	}

	for name, raw := range sent {
		all[name] = raw
	}

	raw, err := json.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("writing secrets: %w", err)
	}

	return c.c.Ring.SealSecret(secretName(id), raw)
}

func secretName(id string) string { return "resource:" + id }
