package main

import (
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// bill writes selvage_VERSION.cdx.json, a CycloneDX bill of materials of the linked modules.
func (r release) bill() error {
	all, err := r.licensed()
	if err != nil {
		return err
	}

	bom := cyclonedx.NewBOM()
	self := component("github.com/selvage/selvage", r.version, []string{"Apache-2.0"})
	self.Type = cyclonedx.ComponentTypeApplication
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.date.Format(time.RFC3339), Component: &self}

	var components []cyclonedx.Component
	var refs []string
	for _, l := range all {
		c := component(l.Path, l.Version, l.ids)
		if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(l.Sum, "h1:")); err == nil && l.Sum != "" {
			c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
		}
		components, refs = append(components, c), append(refs, c.BOMRef)
	}

	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: self.BOMRef, Dependencies: &refs}}

	f, err := os.Create(r.billFile())
	if err != nil {
		return err
	}
	defer f.Close()
	if err := cyclonedx.NewBOMEncoder(f, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return f.Close()
}

func (r release) billFile() string {
	return filepath.Join(r.out, "selvage_"+r.version+".cdx.json")
}

func component(path, version string, ids []string) cyclonedx.Component {
	purl := "pkg:golang/" + path + "@" + version
	var licenses cyclonedx.Licenses
	for _, id := range ids {
		licenses = append(licenses, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: id}})
	}
	return cyclonedx.Component{
		BOMRef:     purl,
		Type:       cyclonedx.ComponentTypeLibrary,
		Name:       path,
		Version:    version,
		PackageURL: purl,
		Licenses:   &licenses,
	}
}
