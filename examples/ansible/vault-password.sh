#!/bin/sh
# Ansible runs this file, and takes what it prints as the password of the vault.
printf '%s' "$VAULT_PASSWORD"
