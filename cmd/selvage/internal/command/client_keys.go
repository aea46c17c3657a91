package command

import (
	"bytes"
	"encoding/json"
	"os"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/idp"
)

// maxKeyFile is the maximum size of a file of public keys.
const maxKeyFile = 1 << 20

// setKeys sets the keys of a client to those of --jwks, or to the URI of --jwks-uri. Setting one removes
// the other.
func setKeys(cmd *cobra.Command, c *idp.Client) error {
	if file := cli.Text(cmd, "jwks"); file != nil {
		set, err := readKeys(*file)
		if err != nil {
			return err
		}
		c.JWKS, c.JWKSURI = set, ""
	}
	if uri := cli.Text(cmd, "jwks-uri"); uri != nil {
		c.JWKSURI = *uri
		if *uri != "" && !cmd.Flags().Changed("jwks") {
			c.JWKS = nil
		}
	}
	return nil
}

// readKeys returns the key set of a file as compact JSON, or nil if the name is empty.
func readKeys(file string) (json.RawMessage, error) {
	if file == "" {
		return nil, nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, cli.Usagef("--jwks: %v", err)
	}
	if info.Size() > maxKeyFile {
		return nil, cli.Usagef("--jwks: %s is too large for a key set", file)
	}

	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, cli.Usagef("--jwks: %v", err)
	}

	var set bytes.Buffer
	err = json.Compact(&set, raw)
	if err != nil {
		return nil, cli.Usagef("--jwks: %s is not JSON; it must be a JWKS, {\"keys\": [...]}", file)
	}
	return set.Bytes(), nil
}

// formatKeys returns the URI of a client's keys or, if the keys themselves are stored, their number. It
// returns "" for a client without keys.
func formatKeys(c client) string {
	if c.JWKSURI != "" {
		return c.JWKSURI
	}
	if len(c.JWKS) == 0 {
		return ""
	}

	var set struct{ Keys []json.RawMessage }
	err := json.Unmarshal(c.JWKS, &set)
	if err != nil {
		return "" // impossible, because a key set is checked before it is stored
	}
	return cli.Plural(len(set.Keys), "key")
}
