// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

// minQuotaBytes is the least that a member can work with.
const minQuotaBytes = 16 << 20

// Values of --storage.
const (
	storageEmbedded = "embedded"
	storageExternal = "external"
)

// StorageOptions choose where objects are stored. With --etcd-servers that is an etcd cluster elsewhere; without, an etcd
// that runs in this process.
type StorageOptions struct {
	// DataDir is the directory of the embedded etcd.
	DataDir string
	// AllowEphemeralData permits a DataDir that may be gone after a restart.
	AllowEphemeralData bool
	// QuotaBytes limits the database of the embedded etcd.
	QuotaBytes int64
	// DefragmentInterval is the time between two looks at the fragmentation of the embedded etcd.
	DefragmentInterval time.Duration
	// Backup says where and how often the embedded etcd is backed up.
	Backup BackupOptions
	// Upload says where backups of the embedded etcd are copied to.
	Upload BackupUploadOptions
	// Installed is the kind of storage that this installation began with, and empty when it is not known.
	Installed string
	// Witness compares the store with the main cluster before it is served, and while it is.
	Witness bool
	// PodName is the name of the pod in which the process runs, if it does.
	PodName string
	// Members are the hosts of the members of the embedded etcd, by the ordinals of their pods; none for a single member.
	Members []string
}

// NewStorageOptions returns the defaults. The quota fits the memory limit of the manifests: objects that are mostly text
// take as much memory as space, and half of the limit is for them.
func NewStorageOptions() *StorageOptions {
	return &StorageOptions{QuotaBytes: 1 << 30, DefragmentInterval: 10 * time.Minute, Backup: newBackupOptions(),
		Upload: BackupUploadOptions{Keep: DefaultBackupKeep}, Witness: true}
}

// AddFlags adds the flags of both kinds of storage.
func (s *StorageOptions) AddFlags(fs *pflag.FlagSet, external *genericoptions.EtcdOptions) {
	fs.StringVar(&s.DataDir, "data-dir", s.DataDir, "Directory of the embedded etcd, which runs when --etcd-servers is not "+
		"given. It must be persistent and belong to this process alone: when its content is lost, the garbage collector of "+
		"the cluster deletes all running Jobs of all JobSets.")
	fs.BoolVar(&s.AllowEphemeralData, "allow-ephemeral-data", s.AllowEphemeralData, "Accept a temporary directory or a "+
		"file system in memory as --data-dir. For tests only.")
	fs.Int64Var(&s.QuotaBytes, "embedded-etcd-quota-bytes", s.QuotaBytes, "Size of the embedded etcd's database at which "+
		"it refuses writes. From nine tenths on, creations and changes of spec are refused, so that JobSets can still be deleted. "+
		"All objects are also kept in memory: raise the memory limit with it.")
	fs.DurationVar(&s.DefragmentInterval, "embedded-etcd-defragment-interval", s.DefragmentInterval, "Time between two "+
		"looks at the fragmentation of the embedded etcd's database. It is defragmented when more than half of it, and "+
		"at least 64 MiB, are free. 0 switches this off.")
	s.Backup.addFlags(fs)
	s.Upload.addFlags(fs)
	fs.StringVar(&s.Installed, "storage", s.Installed, "Kind of storage that this installation began with, embedded or "+
		"external. A server whose other flags say otherwise does not start, because it would serve another store.")
	fs.BoolVar(&s.Witness, "store-witness", s.Witness, "Serve only the store that belongs to this cluster: a key in etcd and "+
		"ConfigMap kube-system/jobset-apiserver-store must agree. Otherwise the garbage collector of the cluster deletes all running Jobs "+
		"when the store is empty, foreign or restored. For tests only when false.")
	fs.StringVar(&s.PodName, "pod-name", s.PodName, "Name of the pod of a StatefulSet in which this server runs. With the "+
		"embedded etcd only the pod with ordinal 0 starts: any other has a store of its own, which is empty. With --"+membersFlag+
		" all start.")
	fs.StringSliceVar(&s.Members, membersFlag, s.Members, "Alpha: hosts of the three members of the embedded etcd, as DNS names or IP "+
		"addresses, in the order of the ordinals of their pods (comma separated). Each server runs the member with the ordinal of its "+
		"--pod-name, which listens on the ports 2379 and 2380 of --bind-address. All servers have the same list. Without it there is a single "+
		"member.")
	omit(fs, external.AddFlags, "etcd-servers-overrides", "storage-backend", "default-watch-cache-size")
	fs.Lookup("etcd-servers").Usage = "Addresses of an external etcd cluster of version " + members.MinVersion +
		" or newer (scheme://host:port, comma separated). Without it an embedded etcd runs in --data-dir."
}

// Validate checks what can be checked without touching anything.
func (s *StorageOptions) Validate(external *genericoptions.EtcdOptions) error {
	transport := external.StorageConfig.Transport
	if err := s.validateInstallation(len(transport.ServerList) == 0); err != nil {
		return err
	}
	switch embedded := len(transport.ServerList) == 0; {
	case embedded && s.DataDir == "":
		return flagerror.New("data-dir", "must be set to a persistent directory for the embedded etcd; or set --etcd-servers to use an "+
			"external one")
	case !embedded && s.DataDir != "":
		return flagerror.New("data-dir", "must not be set together with --etcd-servers: remove one of them")
	case embedded:
		return s.validateEmbedded(transport.TrustedCAFile + transport.CertFile + transport.KeyFile)
	case !embedded && s.Backup.Dir != "":
		return flagerror.New("backup-dir", "is for the embedded etcd only: remove it, and run \"jobset-apiserver store backup\" with "+
			"--etcd-servers, for instance in a CronJob")
	case !embedded && s.Upload.set():
		return flagerror.New("backup-upload", "is for the embedded etcd only: remove it and the flags that begin with --s3-, and run "+
			"\"jobset-apiserver store backup s3://BUCKET/PREFIX/\" with --etcd-servers, for instance in a CronJob")
	case (transport.CertFile == "") != (transport.KeyFile == ""):
		return flagerror.New("etcd-certfile", "must be set together with --etcd-keyfile")
	}
	return nil
}

// validateInstallation refuses to serve a store that is not the one of this installation: the garbage collector would
// delete the Jobs of all JobSets that are not in it.
func (s *StorageOptions) validateInstallation(embedded bool) error {
	chosen := storageExternal
	if embedded {
		chosen = storageEmbedded
	}
	switch s.Installed {
	case "", chosen:
	case storageEmbedded, storageExternal:
		return flagerror.New("storage", "this installation began with the %s storage, but the flags choose the %s one: apply the manifests that "+
			"it was installed with", s.Installed, chosen)
	default:
		return flagerror.New("storage", "must be %s or %s, not %q", storageEmbedded, storageExternal, s.Installed)
	}
	if err := s.validateMembers(embedded); err != nil {
		return err
	}
	if ordinal, ok := podOrdinal(s.PodName); embedded && ok && ordinal != "0" && len(s.Members) == 0 {
		return flagerror.New("pod-name", "%s has ordinal %s, but with the embedded etcd only ordinal 0 may run, because every other pod has an "+
			"empty store: scale the StatefulSet to 1", s.PodName, ordinal)
	}
	return nil
}

// podOrdinal returns the number at the end of the name of a pod of a StatefulSet.
func podOrdinal(name string) (string, bool) {
	at := strings.LastIndexByte(name, '-')
	if at < 0 || at+1 == len(name) || strings.Trim(name[at+1:], "0123456789") != "" {
		return "", false
	}
	return name[at+1:], true
}

func (s *StorageOptions) validateEmbedded(tlsFiles string) error {
	if tlsFiles != "" {
		return flagerror.New("etcd-cafile", "--etcd-certfile and --etcd-keyfile need --etcd-servers: set it, or remove them to use the "+
			"embedded etcd")
	}
	if s.QuotaBytes < minQuotaBytes {
		return flagerror.New("embedded-etcd-quota-bytes", "must be at least %d, not %d", minQuotaBytes, s.QuotaBytes)
	}
	if s.DefragmentInterval < 0 {
		return flagerror.New("embedded-etcd-defragment-interval", "must not be negative; 0 switches defragmentation off")
	}
	if err := s.Backup.validate(s.DataDir, s.AllowEphemeralData); err != nil {
		return err
	}
	if err := s.Upload.validate(s.Backup.Dir); err != nil {
		return err
	}
	if s.AllowEphemeralData {
		return nil
	}
	return flagerror.Wrap("data-dir", etcd.CheckPersistent(s.DataDir), "use a persistent directory, because losing the data makes "+
		"the garbage collector delete running Jobs (tests may set --allow-ephemeral-data)")
}

// certificates is where the self-signed certificate goes unless --cert-dir says otherwise.
func (s *StorageOptions) certificates() string {
	if s.DataDir == "" {
		return ""
	}
	return filepath.Join(s.DataDir, "certificates")
}
