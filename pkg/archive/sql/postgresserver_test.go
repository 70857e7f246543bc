// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// server is a PostgreSQL server that listens on a socket in a directory of the test.
type server struct {
	programs, directory, passwordFile string
	account                           *syscall.SysProcAttr
	process                           *exec.Cmd
}

// newServer starts a server, or skips the test where there is none.
func newServer(t *testing.T) *server {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		t.Skip("PostgreSQL is not installed: as root, run apt-get install postgresql")
	}
	slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
	directory := t.TempDir()
	s := &server{programs: filepath.Dir(found[0]), directory: directory, passwordFile: filepath.Join(directory, "password")}
	s.account = s.unprivileged(t)
	s.setPassword(t, "first")
	s.run(t, "initdb", "--no-sync", "--username=archive", "--auth=scram-sha-256", "--pwfile="+s.passwordFile, "--encoding=UTF8", "--locale=C",
		"--pgdata="+filepath.Join(directory, "data"))
	s.start(t)
	t.Cleanup(func() { s.stop(t) })
	return s
}

// version returns the number in the path of a program.
func version(path string) int {
	n, err := strconv.Atoi(strings.Split(path, "/")[4])
	if err != nil {
		return 0
	}
	return n
}

// unprivileged returns how to run programs that refuse to run as root. It makes the directory accessible to them.
func (s *server) unprivileged(t *testing.T) *syscall.SysProcAttr {
	t.Helper()
	attributes := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGQUIT}
	if os.Getuid() != 0 {
		return attributes
	}
	account, err := user.Lookup("nobody")
	if err != nil {
		t.Skipf("root needs another user to run PostgreSQL: %v", err)
	}
	uid, err := strconv.Atoi(account.Uid)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.Atoi(account.Gid)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(filepath.Dir(s.directory), 0o711), os.Chmod(s.directory, 0o700), os.Chown(s.directory, uid, gid)); err != nil {
		t.Fatal(err)
	}
	attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: false}
	return attributes
}

func (s *server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.programs, program), args...)
	cmd.Dir, cmd.SysProcAttr, cmd.Env = s.directory, s.account, []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	return cmd
}

func (s *server) run(t *testing.T, program string, args ...string) {
	t.Helper()
	if output, err := s.command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, output)
	}
}

// start starts the server, and waits until it answers. Nothing is forced to the disk, which dies with the test.
func (s *server) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(s.directory, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the server has it
	s.process = s.command("postgres", "-D", filepath.Join(s.directory, "data"), "-k", s.directory, "-c", "listen_addresses=", "-c", "fsync=off",
		"-c", "max_connections=60", "-c", "shared_buffers=16MB")
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func(process *exec.Cmd) {
		process.Wait() //nolint:errcheck // the log says why
		close(exited)
	}(s.process)
	s.process.Cancel = func() error { <-exited; return nil }
	err = wait.PollUntilContextCancel(t.Context(), 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		select {
		case <-exited:
			return false, errors.New("the server has ended")
		default:
			return s.administer(ctx, `SELECT 1`) == nil, nil
		}
	})
	if err != nil {
		text, _ := os.ReadFile(filepath.Join(s.directory, "log"))
		t.Fatalf("starting PostgreSQL: %v\n%s", err, text)
	}
}

// stop ends the server at once, with all its connections.
func (s *server) stop(t *testing.T) {
	t.Helper()
	if err := s.process.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	s.process.Cancel() //nolint:errcheck // it waits
}

// url returns the URL of a database.
func (s *server) url(database string) string {
	return (&url.URL{Scheme: "postgres", User: url.User("archive"), Path: "/" + database,
		RawQuery: url.Values{"host": {s.directory}, "sslmode": {"disable"}}.Encode()}).String()
}

// administer runs a statement in the database that every server has.
func (s *server) administer(ctx context.Context, statement string) error {
	password, err := os.ReadFile(s.passwordFile)
	if err != nil {
		return err
	}
	db, err := sql.Open("pgx", s.url("postgres")+"&password="+url.QueryEscape(string(password)))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, statement)
	return errors.Join(err, db.Close())
}

func (s *server) setPassword(t *testing.T, password string) {
	t.Helper()
	if err := os.WriteFile(s.passwordFile, []byte(password), 0o644); err != nil {
		t.Fatal(err)
	}
}

// create returns the configuration of an empty database.
func (s *server) create(t *testing.T, name string) Config {
	t.Helper()
	if err := s.administer(t.Context(), `CREATE DATABASE `+name); err != nil {
		t.Fatal(err)
	}
	return Config{URL: s.url(name), PasswordFile: s.passwordFile, Timeout: longTimeout}
}
