// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/component-base/featuregate"
)

// settings are the values of the environment variables of hack/cluster.sh.
type settings struct {
	root, dir, name string
	// nodes are simulated, real nodes have containers.
	nodes, realNodes    int
	storage, components string
	// programs is the directory of our two programs; build says that they are built into it.
	programs string
	build    bool

	apiServerArgs, controllerArgs, kubeAPIServerArgs, kubeControllerManagerArgs, kubeSchedulerArgs []string

	auditPolicy, kubeAuditPolicy string
	// gates are the feature gates of both of our programs, which featureGates has as text.
	gates        featuregate.MutableVersionedFeatureGate
	featureGates string
	// kubeGOGC is GOGC for the programs of Kubernetes, etcd and KWOK; empty for the default of Go.
	kubeGOGC string
}

const (
	embeddedStorage = "embedded"
	etcdStorage     = "etcd"
	allComponents   = "all"
	noComponents    = "none"
	// imagesOnly prepares real nodes for an installation that the caller makes itself.
	imagesOnly = "images"
)

// readSettings returns what the environment asks for in the checkout, with what the cluster was created with.
func readSettings(root string, getenv func(string) string) (settings, error) {
	or := func(variable, value string) string {
		if set := getenv(variable); set != "" {
			return set
		}
		return value
	}
	var errs [3]error
	s := settings{
		root: root, components: or("CLUSTER_COMPONENTS", allComponents), build: getenv("CLUSTER_BIN") == "",
		apiServerArgs: strings.Fields(getenv("CLUSTER_APISERVER_ARGS")), controllerArgs: strings.Fields(getenv("CLUSTER_CONTROLLER_ARGS")),
		kubeAPIServerArgs:         strings.Fields(getenv("CLUSTER_KUBE_APISERVER_ARGS")),
		kubeControllerManagerArgs: strings.Fields(getenv("CLUSTER_KUBE_CONTROLLER_MANAGER_ARGS")),
		kubeSchedulerArgs:         strings.Fields(getenv("CLUSTER_KUBE_SCHEDULER_ARGS")),
		auditPolicy:               getenv("CLUSTER_AUDIT_POLICY"), kubeAuditPolicy: getenv("CLUSTER_KUBE_AUDIT_POLICY"), kubeGOGC: getenv("CLUSTER_KUBE_GOGC"),
	}
	s.dir, errs[0] = resolve(or("CLUSTER_DIR", filepath.Join(root, ".cluster")))
	s.programs, errs[1] = resolve(or("CLUSTER_BIN", filepath.Join(root, "bin")))
	nodes := or("CLUSTER_NODES", "20")
	var err error
	if s.nodes, err = strconv.Atoi(nodes); err != nil || s.nodes < 0 {
		errs[2] = fmt.Errorf("CLUSTER_NODES: %q must be a number", nodes)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return s, err
	}
	name := fmt.Sprintf("jobset-%d", crc32.ChecksumIEEE([]byte(s.dir)))
	if s.name, err = s.keep("CLUSTER_NAME", getenv("CLUSTER_NAME"), name); err != nil {
		return s, err
	}
	if s.storage, err = s.keep("CLUSTER_STORAGE", getenv("CLUSTER_STORAGE"), embeddedStorage); err != nil {
		return s, err
	}
	realNodes, err := s.keep("CLUSTER_REAL_NODES", getenv("CLUSTER_REAL_NODES"), "0")
	if err != nil {
		return s, err
	}
	if s.realNodes, err = strconv.Atoi(realNodes); err != nil || s.realNodes < 0 || s.realNodes > mostRealNodes {
		return s, fmt.Errorf("CLUSTER_REAL_NODES: %q must be a number from 0 to %d", realNodes, mostRealNodes)
	}
	if err := s.readGates(getenv(gatesVariable)); err != nil {
		return s, err
	}
	return s, s.validate()
}

// resolve returns the absolute path without symbolic links; it need not exist.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	parent, err := resolve(filepath.Dir(path))
	return filepath.Join(parent, filepath.Base(path)), err
}

// keep returns the value with which the cluster was created, or the one of the environment, or the default. What a cluster
// was created with holds for its life. Its store in particular must not change under it: with an empty one, the garbage
// collector would delete all Jobs.
func (s *settings) keep(variable, value, standard string) (string, error) {
	content, err := os.ReadFile(s.path("settings", variable))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	kept := strings.TrimSpace(string(content))
	switch {
	case kept != "" && value != "" && value != kept:
		return "", fmt.Errorf("%s: %q must be %q, with which this cluster was created; use another CLUSTER_DIR", variable, value, kept)
	case kept != "":
		return kept, nil
	case value != "":
		return value, nil
	}
	return standard, nil
}

func (s *settings) save() error {
	if err := os.MkdirAll(s.path("settings"), 0o755); err != nil {
		return err
	}
	return errors.Join(writeFile(s.path("settings", "CLUSTER_NAME"), s.name+"\n"), writeFile(s.path("settings", "CLUSTER_STORAGE"), s.storage+"\n"),
		writeFile(s.path("settings", "CLUSTER_REAL_NODES"), strconv.Itoa(s.realNodes)+"\n"), writeFile(s.path("settings", gatesVariable), s.featureGates+"\n"))
}

func (s *settings) validate() error {
	if s.storage != embeddedStorage && s.storage != etcdStorage {
		return fmt.Errorf("CLUSTER_STORAGE: %q must be embedded or etcd", s.storage)
	}
	if !slices.Contains([]string{allComponents, noComponents, imagesOnly}, s.components) {
		return fmt.Errorf("CLUSTER_COMPONENTS: %q must be all, none or images", s.components)
	}
	if s.components == imagesOnly && s.realNodes == 0 {
		return errors.New("CLUSTER_COMPONENTS: images are for real nodes: set CLUSTER_REAL_NODES")
	}
	home, _ := os.UserHomeDir()
	if s.dir == "/" || s.dir == s.root || s.dir == home {
		return fmt.Errorf("CLUSTER_DIR: %s must be a directory of its own, because down removes what is in it", s.dir)
	}
	return nil
}

// path returns a path below the directory of the cluster.
func (s *settings) path(elements ...string) string {
	return filepath.Join(append([]string{s.dir}, elements...)...)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func writeFile(path, content string) error { return os.WriteFile(path, []byte(content), 0o644) }
