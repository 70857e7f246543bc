// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package krew

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/mod/semver"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/golang"
)

var pluginName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// maxShortDescription is the number of characters that fit into the list of krew search.
const maxShortDescription = 50

// Validate checks a manifest against the rules of Krew and against the archives in a directory, one for each platform. It returns all
// errors.
func Validate(p *Plugin, dir string, platforms []golang.Platform) error {
	errs := append(validateHeader(p), validateText(p.Spec)...)
	found := map[golang.Platform]bool{}
	for i, download := range p.Spec.Platforms {
		labels := download.Selector.MatchLabels
		platform := golang.Platform{OS: labels.OS, Arch: labels.Arch}
		if found[platform] {
			errs = append(errs, fmt.Errorf("spec.platforms[%d].selector: %s must be there once only", i, platform))
		}
		found[platform] = true
		for _, err := range validateDownload(download, platform, dir) {
			errs = append(errs, fmt.Errorf("spec.platforms[%d].%w", i, err))
		}
	}
	for _, platform := range platforms {
		if !found[platform] {
			errs = append(errs, fmt.Errorf("spec.platforms: must have %s", platform))
		}
		delete(found, platform)
	}
	for platform := range found {
		errs = append(errs, fmt.Errorf("spec.platforms: %s must be one of the platforms of the plugin", platform))
	}
	return errors.Join(errs...)
}

func validateHeader(p *Plugin) []error {
	var errs []error
	if p.APIVersion != apiVersion {
		errs = append(errs, fmt.Errorf("apiVersion: must be %s, is %q", apiVersion, p.APIVersion))
	}
	if p.Kind != kind {
		errs = append(errs, fmt.Errorf("kind: must be %s, is %q", kind, p.Kind))
	}
	if !pluginName.MatchString(p.Metadata.Name) {
		errs = append(errs, fmt.Errorf("metadata.name: must be lower-case letters, digits and dashes, is %q", p.Metadata.Name))
	}
	return errs
}

func validateText(spec Spec) []error {
	var errs []error
	// semver accepts v1 and v1.2, which Krew does not.
	if !semver.IsValid(spec.Version) || semver.Canonical(spec.Version)+semver.Build(spec.Version) != spec.Version {
		errs = append(errs, fmt.Errorf("spec.version: must be a semantic version such as v1.2.3, is %q", spec.Version))
	}
	if err := validateURL(spec.Homepage); err != nil {
		errs = append(errs, fmt.Errorf("spec.homepage: %w", err))
	}
	if n := utf8.RuneCountInString(spec.ShortDescription); n == 0 || n > maxShortDescription {
		errs = append(errs, fmt.Errorf("spec.shortDescription: must have 1 to %d characters, has %d", maxShortDescription, n))
	}
	if strings.TrimSpace(spec.Description) == "" {
		errs = append(errs, errors.New("spec.description: must not be empty"))
	}
	return errs
}

func validateURL(value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("must be an address that begins with https://, is %q", value)
	}
	return nil
}

func validateDownload(download Download, platform golang.Platform, dir string) []error {
	var errs []error
	if err := validateURL(download.URI); err != nil {
		errs = append(errs, fmt.Errorf("uri: %w", err))
	}
	archive := filepath.Join(dir, path.Base(download.URI))
	sum, err := Checksum(archive)
	if err != nil {
		return append(errs, fmt.Errorf("uri: must end with the name of an archive: %w", err))
	}
	if download.SHA256 != sum {
		errs = append(errs, fmt.Errorf("sha256: must be %s, that of %s, is %q", sum, filepath.Base(archive), download.SHA256))
	}
	modes, err := contents(archive, platform)
	if err != nil {
		return append(errs, fmt.Errorf("uri: %s must be an archive for %s: %w", filepath.Base(archive), platform, err))
	}
	copied := map[string]bool{}
	for _, file := range download.Files {
		if _, ok := modes[file.From]; !ok {
			errs = append(errs, fmt.Errorf("files: %s must be in %s", file.From, filepath.Base(archive)))
		}
		if file.To != "." {
			errs = append(errs, fmt.Errorf("files: %s must be copied to the directory of the plugin, which is \".\", is copied to %q", file.From,
				file.To))
		}
		copied[file.From] = true
	}
	if !copied[download.Bin] || modes[download.Bin].Perm()&0o111 == 0 {
		errs = append(errs, fmt.Errorf("bin: must be one of the files and executable, is %q", download.Bin))
	}
	return errs
}
