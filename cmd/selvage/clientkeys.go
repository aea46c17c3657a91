package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/idp"
)

// maxKeyFile bounds what is read of a file of keys.
const maxKeyFile = 1 << 20

// setKeys writes the keys that were given into a client. Those by value and those
// by address take each other's place.
func setKeys(cmd *cobra.Command, c *idp.Client) error {
	if file := text(cmd, "jwks"); file != nil {
		set, err := readKeys(*file)
		if err != nil {
			return err
		}
		c.JWKS, c.JWKSURI = set, ""
	}
	if uri := text(cmd, "jwks-uri"); uri != nil {
		c.JWKSURI = *uri
		if *uri != "" && !cmd.Flags().Changed("jwks") {
			c.JWKS = nil
		}
	}
	return nil
}

// readKeys returns the key set of a file as it is kept; "" means none.
func readKeys(file string) (json.RawMessage, error) {
	if file == "" {
		return nil, nil
	}
	info, err := os.Stat(file)
	if err == nil && info.Size() > maxKeyFile {
		err = fmt.Errorf("%s is too large for a key set", file)
	}
	if err != nil {
		return nil, usagef("--jwks: %v", err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, usagef("--jwks: %v", err)
	}
	var set bytes.Buffer
	if json.Compact(&set, raw) != nil {
		return nil, usagef("--jwks: %s is not JSON; it must be a JWKS, {\"keys\": [...]}", file)
	}
	return set.Bytes(), nil
}

// keysOf tells where a client's keys are.
func keysOf(c client) string {
	if c.JWKSURI != "" {
		return c.JWKSURI
	}
	var set struct{ Keys []json.RawMessage }
	if json.Unmarshal(c.JWKS, &set) != nil {
		return ""
	}
	return plural(len(set.Keys), "key")
}
