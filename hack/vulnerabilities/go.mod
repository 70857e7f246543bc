// Pins the vulnerability check that hack/verify-vulnerabilities.sh runs, and the database of vulnerabilities.
module github.com/jobset-apiserver/jobset-apiserver/hack/vulnerabilities

go 1.26.0

// forks is not used. It is the program of the database's module that needs no other module, and keeps the database required.
tool golang.org/x/vulndb/cmd/forks

require (
	golang.org/x/mod v0.42.0
	golang.org/x/vuln v1.9.0
)

require (
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/telemetry v0.0.0-20261010193011-f71dc92da45e // indirect
	golang.org/x/tools v0.52.0 // indirect
	golang.org/x/vulndb v0.0.0-20261105234957-e22db6528018 // indirect
)
