// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/golang"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/oci"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/sbom"
)

const (
	license  = "Apache-2.0"
	homepage = "https://github.com/jobset-apiserver/jobset-apiserver"

	// dirty is behind the commit of a tree with changes that are not in the commit.
	dirty = "-dirty"

	// maxTag is the number of characters that a tag of an image may have.
	maxTag = 128
)

// revision is a commit, or a commit and the remark that the tree had changes that are not in it.
var revision = regexp.MustCompile(`^[0-9a-f]{40}(-dirty)?$`)

// goMod is the go.mod of this program.
//
//go:embed go.mod
var goMod []byte

// release is what images and archives say about where they are from.
type release struct {
	// Source is the module with the programs.
	Source golang.Source
	// Output is the directory that results are written to.
	Output string
	// Version is a semantic version, such as v1.2.3, which is the tag of the images, too.
	Version string
	// Revision is the commit that the programs are built from.
	Revision string
	// Created is the time of the commit, in seconds since 1970. The time of the build would make each build different.
	Created int64
}

func (r *release) flags(fs *flag.FlagSet) {
	fs.StringVar(&r.Source.Dir, "source", "", "root directory of the module with the programs")
	fs.StringVar(&r.Source.LDFlags, "ldflags", "", "flags for the linker")
	fs.StringVar(&r.Output, "output", "", "directory to write to")
	fs.StringVar(&r.Version, "version", "", "semantic version, such as v1.2.3")
	fs.StringVar(&r.Revision, "revision", "", "commit that is built, with -dirty behind it if the tree has other changes")
	fs.Int64Var(&r.Created, "created", 0, "time of the commit, in seconds since 1970")
}

func (r *release) validate() error {
	var errs []error
	if r.Source.Dir == "" || r.Output == "" {
		errs = append(errs, errors.New("--source and --output are required"))
	}
	if !semver.IsValid(r.Version) || semver.Build(r.Version) != "" || semver.Canonical(r.Version) != r.Version || len(r.Version) > maxTag {
		errs = append(errs, fmt.Errorf("--version must be a semantic version such as v1.2.3 or v1.2.3-rc.1, of at most %d characters, is %q",
			maxTag, r.Version))
	}
	if !revision.MatchString(r.Revision) {
		errs = append(errs, fmt.Errorf("--revision must be a commit of 40 hexadecimal digits, is %q", r.Revision))
	}
	if r.Created <= 0 {
		errs = append(errs, fmt.Errorf("--created must be a number of seconds since 1970, is %d", r.Created))
	}
	return errors.Join(errs...)
}

func (r *release) created() time.Time { return time.Unix(r.Created, 0).UTC() }

// labels returns the labels of the image of a program: those that OCI defines, and how the program was built.
func (r *release) labels(p program) (map[string]string, error) {
	sums, err := os.ReadFile(filepath.Join(r.Source.Dir, "go.sum"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	roots, err := rootsModule()
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"org.opencontainers.image.title":         p.Name,
		"org.opencontainers.image.description":   p.Description,
		"org.opencontainers.image.url":           homepage,
		"org.opencontainers.image.source":        homepage,
		"org.opencontainers.image.documentation": homepage + "/tree/main/docs",
		"org.opencontainers.image.licenses":      license,
		"org.opencontainers.image.version":       r.Version,
		"org.opencontainers.image.revision":      r.Revision,
		"org.opencontainers.image.created":       r.created().Format(time.RFC3339),
		"io.jobset-apiserver.build.command":      "make images",
		"io.jobset-apiserver.build.package":      p.Package,
		"io.jobset-apiserver.build.go":           golang.Version(),
		"io.jobset-apiserver.build.flags":        "CGO_ENABLED=0 go build " + golang.Flags + " -ldflags='" + r.Source.LDFlags + "'",
		"io.jobset-apiserver.build.go-sum":       sbom.Digest(sums),
		"io.jobset-apiserver.build.roots":        roots.Path + "@" + roots.Version,
	}, nil
}

// subject describes a program for its bill of materials.
func (r *release) subject(p program, platform golang.Platform, others ...sbom.Module) sbom.Subject {
	return sbom.Subject{
		Name:        p.Name,
		Version:     r.Version,
		Description: p.Description,
		License:     license,
		Created:     r.created(),
		Platform:    platform,
		Others:      others,
	}
}

// rootsModule returns the module with the certificate authorities, at the version that this program contains.
func rootsModule() (sbom.Module, error) {
	file, err := modfile.ParseLax("go.mod", goMod, nil)
	if err != nil {
		return sbom.Module{}, err
	}
	for _, require := range file.Require {
		if require.Mod.Path == oci.RootsModule {
			return sbom.Module{Path: require.Mod.Path, Version: require.Mod.Version}, nil
		}
	}
	return sbom.Module{}, fmt.Errorf("go.mod must require %s", oci.RootsModule)
}
